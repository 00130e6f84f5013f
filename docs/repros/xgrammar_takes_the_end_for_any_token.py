# xgrammar 0.2.9
vocabulary = [b'a', b'b', b'']
walk = [2]
grammar = '{"type": "structural_tag", "format": {"type": "exclude_token", "exclude_tokens": ["a"]}}'
import xgrammar
info = xgrammar.TokenizerInfo(vocabulary, xgrammar.VocabType.RAW, stop_token_ids=[len(vocabulary) - 1])
compiled = xgrammar.GrammarCompiler(info).compile_structural_tag(grammar)
matcher = xgrammar.GrammarMatcher(compiled)
mask = xgrammar.allocate_token_bitmask(1, len(vocabulary))
print("may end:", matcher.is_completed())
for token in walk:
    matcher.fill_next_token_bitmask(mask)
    allowed = bool(mask[0, token // 32].item() >> token % 32 & 1)
    accepted = matcher.accept_token(token)
    print(vocabulary[token], allowed, accepted)
# expected: refused (False False), because one token must come; seen: the output may end without any
