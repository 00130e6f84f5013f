# xgrammar 0.2.9
vocabulary = [bytes([byte]) for byte in range(256)] + [b'']
walk = [*b'""', 256]
grammar = '{"properties": {}}'
instance = b'""'
import json, jsonschema, referencing
validator = jsonschema.Draft202012Validator(json.loads(grammar), registry=referencing.Registry())
verdict = validator.is_valid(json.loads(instance))
print("jsonschema.Draft202012Validator: the instance is", "valid" if verdict else "not valid")
assert verdict is True
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
# expected: accepted to the end (True True on every line of a token), because the instance is valid, says jsonschema.Draft202012Validator
