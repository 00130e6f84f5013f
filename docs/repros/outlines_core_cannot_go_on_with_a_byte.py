# outlines-core 0.2.14
vocabulary = [bytes([byte]) for byte in range(256)] + ['个'.encode(), b'']
walk = [256, *'简'.encode(), 257]
grammar = '[一-龥]+'
instance = '个简'.encode()
import regex
said = regex.fullmatch(grammar, instance.decode()) is not None
print("regex.fullmatch: the instance is", "valid" if said else "not valid")
assert said is True
from outlines_core import Guide, Index, Vocabulary, json_schema
end = len(vocabulary) - 1
guide = Guide(Index('[一-龥]+', Vocabulary(end, {text: [token] for token, text in enumerate(vocabulary[:-1])})))
for token in walk:
    allowed = token in guide.get_tokens()
    try:
        accepted = guide.is_finished() if token == end else guide.advance(token) is not None
    except ValueError:
        accepted = False
    print(vocabulary[token], allowed, accepted)
    if not (allowed and accepted):
        break
# expected: accepted to the end: a vocabulary of SentencePiece has a piece for 个 and spells 简 by its three bytes
