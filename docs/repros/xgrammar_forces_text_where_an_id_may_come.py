# xgrammar 0.2.8
vocabulary = [b'a', b'b', b'']
walk = [0]
grammar = '{"type": "structural_tag", "format": {"type": "or", "elements": [{"type": "token", "token": 0}, {"type": "const_string", "value": "b"}]}}'
import xgrammar
info = xgrammar.TokenizerInfo(vocabulary, xgrammar.VocabType.RAW, stop_token_ids=[len(vocabulary) - 1])
compiled = xgrammar.GrammarCompiler(info).compile_structural_tag(grammar)
matcher = xgrammar.GrammarMatcher(compiled)
forced = matcher.find_jump_forward_string()
mask = xgrammar.allocate_token_bitmask(1, len(vocabulary))
for token in walk:
    matcher.fill_next_token_bitmask(mask)
    allowed = bool(mask[0, token // 32].item() >> token % 32 & 1)
    accepted = matcher.accept_token(token)
    print(vocabulary[token], allowed, accepted)
print("forced:", repr(forced))
# expected: nothing is forced, because the token 0 may come too; seen: "b" is
