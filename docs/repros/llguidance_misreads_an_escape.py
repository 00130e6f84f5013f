# llguidance 1.9.1
vocabulary = [bytes([byte]) for byte in range(256)] + [b'']
walk = [*b'\xc3\xa9ab', 256]
grammar = 'root::="\\u00e9ab"'
import llguidance, llguidance.gbnf_to_lark, llguidance.numpy
class Tokenizer:
    tokens, special_token_ids, eos_token_id, bos_token_id = vocabulary, [len(vocabulary) - 1], len(vocabulary) - 1, None
    def __call__(self, text):
        return [vocabulary.index(bytes([byte])) for byte in (text.encode() if isinstance(text, str) else text)]
vocabulary[-1] = b"</s>"
tokenizer = llguidance.LLTokenizer(llguidance.TokenizerWrapper(Tokenizer()))
matcher = llguidance.LLMatcher(tokenizer, llguidance.gbnf_to_lark.gbnf_to_lark(grammar))
mask = llguidance.numpy.allocate_token_bitmask(1, len(vocabulary))
for token in walk:
    llguidance.numpy.fill_next_token_bitmask(matcher, mask)
    allowed = bool(int(mask[0, token // 32]) >> token % 32 & 1)
    stopped = matcher.is_stopped() and token == walk[-1]  # there the end is taken, but not by try_consume_tokens
    accepted = matcher.consume_token(token) if stopped else matcher.try_consume_tokens([token]) == 1
    print(vocabulary[token], allowed, accepted)
    if not (allowed and accepted):
        break
# expected: accepted to the end (True True on every line), because the text is a sentence of the grammar
