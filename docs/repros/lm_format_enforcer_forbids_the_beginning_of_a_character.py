# lm-format-enforcer 0.11.3
vocabulary = [bytes([byte]) for byte in range(256)] + [b'']
walk = [*b'\xe8']
grammar = '語'
instance = b'\xe8\xaa\x9e'
import regex
said = regex.fullmatch(grammar, instance.decode()) is not None
print("regex.fullmatch: the instance is", "valid" if said else "not valid")
assert said is True
import json
from lmformatenforcer import *
end = len(vocabulary) - 1
texts = [(token, text.decode("utf-8", "replace"), False) for token, text in enumerate(vocabulary[:-1])]
decode = lambda tokens: b"".join(vocabulary[token] for token in tokens).decode("utf-8", "replace").rstrip("\ufffd")
parser = RegexParser(grammar)
enforcer = TokenEnforcer(TokenEnforcerTokenizerData(texts, decode, end, False, len(vocabulary)), parser)
parser.config.max_consecutive_whitespaces = 9223372036854775807
parser.config.force_json_field_order = False
parser.config.max_json_array_length = 20
for position, token in enumerate(walk):  # the library has no accept: a token is taken if it is allowed
    allowed = enforcer.get_allowed_tokens(walk[:position]).is_token_allowed(token)
    print(vocabulary[token], allowed, allowed)
    if not allowed:
        break
# expected: the last token is allowed and accepted, because an output can go on with it; seen: after b'' it forbids 1 token that the grammar allows, e.g. b'\xe8'
