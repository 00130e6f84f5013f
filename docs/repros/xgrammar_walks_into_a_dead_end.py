# xgrammar 0.2.9
vocabulary = [bytes([byte]) for byte in range(256)] + [b'']
walk = [*b'b']
grammar = 'root::=""|a\na::="b"a'
import json, xgrammar
info = xgrammar.TokenizerInfo(vocabulary, xgrammar.VocabType.RAW, stop_token_ids=[len(vocabulary) - 1])
compiled = xgrammar.GrammarCompiler(info).compile_grammar(grammar)
matcher = xgrammar.GrammarMatcher(compiled)
mask = xgrammar.allocate_token_bitmask(1, len(vocabulary))
for token in walk:
    matcher.fill_next_token_bitmask(mask)
    allowed = bool(mask[0, token // 32].item() >> token % 32 & 1)
    accepted = matcher.accept_token(token)
    print(vocabulary[token], allowed, accepted)
    if not (allowed and accepted):
        break
# expected: the last token is refused, because no output goes on with it; seen: after b'' it allows 1 token that the grammar forbids, e.g. b'b'
