# lm-format-enforcer 0.11.3
vocabulary = [bytes([byte]) for byte in range(256)] + [b'']
walk = [*b'[{}]', 256]
grammar = '{"type": ["array"], "items": {"type": "string"}}'
instance = b'[{}]'
import json, jsonschema, referencing
validator = jsonschema.Draft202012Validator(json.loads(grammar), registry=referencing.Registry())
said = validator.is_valid(json.loads(instance))
print("jsonschema.Draft202012Validator: the instance is", "valid" if said else "not valid")
assert said is False
import json
from lmformatenforcer import *
end = len(vocabulary) - 1
texts = [(token, text.decode("utf-8", "replace"), False) for token, text in enumerate(vocabulary[:-1])]
decode = lambda tokens: b"".join(vocabulary[token] for token in tokens).decode("utf-8", "replace").rstrip("\ufffd")
parser = JsonSchemaParser(None if json.loads(grammar) is True else json.loads(grammar))
enforcer = TokenEnforcer(TokenEnforcerTokenizerData(texts, decode, end, False, len(vocabulary)), parser)
parser.config.max_consecutive_whitespaces = 9223372036854775807
parser.config.force_json_field_order = False
parser.config.max_json_array_length = 20
for position, token in enumerate(walk):  # the library has no accept: a token is taken if it is allowed
    allowed = enforcer.get_allowed_tokens(walk[:position]).is_token_allowed(token)
    print(vocabulary[token], allowed, allowed)
    if not allowed:
        break
# expected: refused somewhere (False False on the last line), because the instance is not valid, says jsonschema.Draft202012Validator
