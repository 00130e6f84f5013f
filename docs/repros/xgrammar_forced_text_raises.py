# xgrammar 0.2.8
vocabulary = [bytes([byte]) for byte in range(256)] + [b'']
walk = [*b'\xf0']
grammar = '😁'
instance = b'\xf0\x9f\x98\x81'
import regex
said = regex.fullmatch(grammar, instance.decode()) is not None
print("regex.fullmatch: the instance is", "valid" if said else "not valid")
assert said is True
import json, xgrammar
info = xgrammar.TokenizerInfo(vocabulary, xgrammar.VocabType.RAW, stop_token_ids=[len(vocabulary) - 1])
compiled = xgrammar.GrammarCompiler(info).compile_regex(grammar)
matcher = xgrammar.GrammarMatcher(compiled)
mask = xgrammar.allocate_token_bitmask(1, len(vocabulary))
for token in walk:
    matcher.fill_next_token_bitmask(mask)
    allowed = bool(mask[0, token // 32].item() >> token % 32 & 1)
    accepted = matcher.accept_token(token)
    print(vocabulary[token], allowed, accepted)
    if not (allowed and accepted):
        break
print(repr(matcher.find_jump_forward_string()))
# expected: forced text may end inside a character; seen: after b'\xf0' (forced there: b'\x9f\x98\x81') jump_forward raises UnicodeDecodeError: 'utf-8' codec can't decode byte 0x9f in position 0: invalid start byte
