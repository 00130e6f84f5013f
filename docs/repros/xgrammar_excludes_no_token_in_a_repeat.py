# xgrammar 0.2.9
vocabulary = [b'a', b'b', b'']
walk = [1]
grammar = '{"type": "structural_tag", "format": {"type": "repeat", "min": 1, "max": 1, "content": {"type": "exclude_token", "exclude_tokens": [1]}}}'
import xgrammar
info = xgrammar.TokenizerInfo(vocabulary, xgrammar.VocabType.RAW, stop_token_ids=[len(vocabulary) - 1])
compiled = xgrammar.GrammarCompiler(info).compile_structural_tag(grammar)
matcher = xgrammar.GrammarMatcher(compiled)
mask = xgrammar.allocate_token_bitmask(1, len(vocabulary))
for token in walk:
    matcher.fill_next_token_bitmask(mask)
    allowed = bool(mask[0, token // 32].item() >> token % 32 & 1)
    accepted = matcher.accept_token(token)
    print(vocabulary[token], allowed, accepted)
    if not (allowed and accepted):
        break
# expected: the token 1 is refused, because it is excluded, as it is without the repeat; seen: it is allowed
