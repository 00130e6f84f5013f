# outlines-core 0.2.14
vocabulary = [bytes([byte]) for byte in range(256)] + [b'']
walk = [*b'k']
grammar = '(key)*'
instance = b'key'
import regex
said = regex.fullmatch(grammar, instance.decode()) is not None
print("regex.fullmatch: the instance is", "valid" if said else "not valid")
assert said is True
from outlines_core import Guide, Index, Vocabulary, json_schema
end = len(vocabulary) - 1
guide = Guide(Index('(key)*', Vocabulary(end, {text: [token] for token, text in enumerate(vocabulary[:-1])})))
for token in walk:
    allowed = token in guide.get_tokens()
    try:
        accepted = guide.is_finished() if token == end else guide.advance(token) is not None
    except ValueError:
        accepted = False
    print(vocabulary[token], allowed, accepted)
    if not (allowed and accepted):
        break
# expected: every tokenization has the same verdict; seen: 1 of 1 other tokenizations are refused; of this one (random), after b'', b'k' is what the mask and accept_token refuse
