# outlines-core 0.2.14
vocabulary = [bytes([byte]) for byte in range(256)] + [b'']
walk = [*b'["a","a"]', 256]
grammar = '{"type": "array", "items": {"enum": ["a"]}, "uniqueItems": true}'
instance = b'["a","a"]'
import json, jsonschema, referencing
validator = jsonschema.Draft202012Validator(json.loads(grammar), registry=referencing.Registry())
said = validator.is_valid(json.loads(instance))
print("jsonschema.Draft202012Validator: the instance is", "valid" if said else "not valid")
assert said is False
from outlines_core import Guide, Index, Vocabulary, json_schema
end = len(vocabulary) - 1
guide = Guide(Index(json_schema.build_regex_from_schema(grammar, '[\\n\\t\\r ]*'), Vocabulary(end, {text: [token] for token, text in enumerate(vocabulary[:-1])})))
for token in walk:
    allowed = token in guide.get_tokens()
    try:
        accepted = guide.is_finished() if token == end else guide.advance(token) is not None
    except ValueError:
        accepted = False
    print(vocabulary[token], allowed, accepted)
    if not (allowed and accepted):
        break
# expected: refused somewhere (False False on the last line), because the instance is not valid, says jsonschema.Draft202012Validator
