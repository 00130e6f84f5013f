# llguidance 1.9.1
# A draft of two tokens is rejected and taken back, as in speculative decoding; then another token comes. The schema is that of a tree.
import json
import llguidance, llguidance.numpy
vocabulary = [b"[[", b"],", b"],["] + [bytes([byte]) for byte in range(256)] + [b"</s>"]
class Tokenizer:
    tokens, special_token_ids, eos_token_id, bos_token_id = vocabulary, [len(vocabulary) - 1], len(vocabulary) - 1, None
    def __call__(self, text):
        return [vocabulary.index(bytes([byte])) for byte in (text.encode() if isinstance(text, str) else text)]
tokenizer = llguidance.LLTokenizer(llguidance.TokenizerWrapper(Tokenizer()))
mask = llguidance.numpy.allocate_token_bitmask(1, len(vocabulary))
tree = {"type": "array", "items": {"$ref": "#/$defs/tree"}, "maxItems": 2}
grammar = llguidance.LLMatcher.grammar_from_json_schema(json.dumps({"$ref": "#/$defs/tree", "$defs": {"tree": tree}}))
for draft in ((), (b"[", b"[[")):
    matcher = llguidance.LLMatcher(tokenizer, grammar)
    matcher.try_consume_tokens([vocabulary.index(b"[[")])
    for token in draft:
        llguidance.numpy.fill_next_token_bitmask(matcher, mask)
        matcher.try_consume_tokens([vocabulary.index(token)])
    llguidance.numpy.fill_next_token_bitmask(matcher, mask)
    matcher.rollback(len(draft))
    matcher.try_consume_tokens([vocabulary.index(b"],[")])
    llguidance.numpy.fill_next_token_bitmask(matcher, mask)
    print(draft, bool(int(mask[0, 0]) >> 1 & 1), matcher.try_consume_tokens([1]))
# expected: False 0 both times, because behind [[],[], the outer array would have a third item; seen behind the rejected draft: True
