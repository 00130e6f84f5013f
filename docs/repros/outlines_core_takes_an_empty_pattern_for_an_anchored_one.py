# outlines-core 0.2.14
vocabulary = [bytes([byte]) for byte in range(256)] + [b'']
walk = [*b'"c"', 256]
grammar = '{"type": "string", "pattern": ""}'
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
# jsonschema.validate('c', {'type': 'string', 'pattern': ''}) raises nothing
# expected: accepted to the end (True True on every line), because jsonschema says that the instance is valid
