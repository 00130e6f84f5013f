# xgrammar 0.2.9
vocabulary = [b'a', b'b', b'']
walk = [0, 1, 0]
grammar = '{"type": "structural_tag", "format": {"type": "any_text", "max_tokens": 2}}'
import xgrammar
info = xgrammar.TokenizerInfo(vocabulary, xgrammar.VocabType.RAW, stop_token_ids=[len(vocabulary) - 1])
compiled = xgrammar.GrammarCompiler(info).compile_structural_tag(grammar)
mask = xgrammar.allocate_token_bitmask(1, len(vocabulary))
for fills in (True, False):
    matcher = xgrammar.GrammarMatcher(compiled)
    accepted = []
    for token in walk:
        if fills:
            matcher.fill_next_token_bitmask(mask)
        accepted.append(matcher.accept_token(token))
    print("with masks:" if fills else "without masks:", accepted)
# expected: the third token is refused, because two are allowed, as it is where masks are filled; seen: it is accepted
