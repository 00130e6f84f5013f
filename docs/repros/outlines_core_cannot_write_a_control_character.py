# outlines-core 0.2.14
vocabulary = [bytes([byte]) for byte in range(256)] + [b'']
walk = [*b'"\\u001f"', 256]
grammar = '{}'
instance = b'"\\u001f"'
import json, jsonschema, referencing
validator = jsonschema.Draft202012Validator(json.loads(grammar), registry=referencing.Registry())
verdict = validator.is_valid(json.loads(instance))
print("jsonschema.Draft202012Validator: the instance is", "valid" if verdict else "not valid")
assert verdict is True
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
# expected: accepted to the end (True True on every line of a token), because the instance is valid, says jsonschema.Draft202012Validator
