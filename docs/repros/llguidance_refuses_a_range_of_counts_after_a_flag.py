# llguidance 1.9.1
vocabulary = [bytes([byte]) for byte in range(256)] + [b'']
grammar = 'start: "z"i~1..2'
import llguidance
class Tokenizer:
    tokens, special_token_ids, eos_token_id, bos_token_id = vocabulary, [len(vocabulary) - 1], len(vocabulary) - 1, None
    def __call__(self, text):
        return [vocabulary.index(bytes([byte])) for byte in (text.encode() if isinstance(text, str) else text)]
vocabulary[-1] = b"</s>"
tokenizer = llguidance.LLTokenizer(llguidance.TokenizerWrapper(Tokenizer()))
matcher = llguidance.LLMatcher(tokenizer, grammar, log_level=0)
print(matcher.get_error().splitlines()[0] if matcher.is_error() else "compiled")
# expected: it compiles, as it does without the i, or with a blank before the ~
