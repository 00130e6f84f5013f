# llguidance 1.9.1
# With a BPE tokenizer what follows a text decides how the text is cut: >>>{ becomes >> and >{, but >>>{" becomes >>> and {".
import llguidance, llguidance.numpy
merges = [(b"{", b'"'), (b">", b"{"), (b">", b">"), (b">>", b">")]
vocabulary = [bytes([byte]) for byte in range(256)] + [left + right for left, right in merges] + [b"</s>"]
class Tokenizer:
    tokens, special_token_ids, eos_token_id, bos_token_id = vocabulary, [len(vocabulary) - 1], len(vocabulary) - 1, None
    def __call__(self, text):
        pieces = [bytes([byte]) for byte in (text.encode() if isinstance(text, str) else text)]
        for left, right in merges:
            place = 0
            while place < len(pieces) - 1:
                if (pieces[place], pieces[place + 1]) == (left, right):
                    pieces[place : place + 2] = [left + right]
                place += 1
        return [vocabulary.index(piece) for piece in pieces]
tokenizer = llguidance.LLTokenizer(llguidance.TokenizerWrapper(Tokenizer()))
matcher = llguidance.LLMatcher(tokenizer, llguidance.LLMatcher.grammar_from_regex(r'>>>\{("a"|1)'))
mask = llguidance.numpy.allocate_token_bitmask(1, len(vocabulary))
llguidance.numpy.fill_next_token_bitmask(matcher, mask)
own = Tokenizer()('>>>{"a"')
print([vocabulary[token] for token in own], [token for token in vocabulary if int(mask[0, vocabulary.index(token) // 32]) >> vocabulary.index(token) % 32 & 1])
# expected: b'>>>' is among the allowed tokens, because the tokenizer begins >>>{"a" with it; seen: only b'>>' is
