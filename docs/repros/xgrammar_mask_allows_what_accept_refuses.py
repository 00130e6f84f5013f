# xgrammar 0.2.9
vocabulary = [b'a\xe0']
vocabulary += [bytes([byte]) for byte in range(256) if bytes([byte]) not in vocabulary] + [b'']
walk = [0]
grammar = '[az]{0,129}'
instance = b''
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
# expected: the mask says what accept does; seen: after b'' the mask allows 1 token that accept_token refuses, e.g. b'a\xe0'
