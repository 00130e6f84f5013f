# xgrammar 0.2.9
vocabulary = [bytes([byte]) for byte in range(256)] + [b'']
walk = [*b'"no"', 256]
grammar = '{"type": "string", "pattern": "^n(o[a-z]+)?$"}'
instance = b'"no"'
import json, jsonschema, referencing
validator = jsonschema.Draft202012Validator(json.loads(grammar), registry=referencing.Registry())
verdict = validator.is_valid(json.loads(instance))
print("jsonschema.Draft202012Validator: the instance is", "valid" if verdict else "not valid")
assert verdict is False
import json, xgrammar
info = xgrammar.TokenizerInfo(vocabulary, xgrammar.VocabType.RAW, stop_token_ids=[len(vocabulary) - 1])
compiled = xgrammar.GrammarCompiler(info).compile_json_schema(grammar, any_whitespace=True, separators=None, strict_mode=False)
matcher = xgrammar.GrammarMatcher(compiled)
mask = xgrammar.allocate_token_bitmask(1, len(vocabulary))
for token in walk:
    matcher.fill_next_token_bitmask(mask)
    allowed = bool(mask[0, token // 32].item() >> token % 32 & 1)
    accepted = matcher.accept_token(token)
    print(vocabulary[token], allowed, accepted)
    if not (allowed and accepted):
        break
# expected: refused somewhere (False False on the last line), because the instance is not valid, says jsonschema.Draft202012Validator
