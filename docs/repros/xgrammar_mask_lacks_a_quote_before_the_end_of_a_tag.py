# xgrammar 0.2.9
vocabulary = [bytes([byte]) for byte in range(256)] + [b'"<', b'']
walk = [*b'<v>"a', 256]
grammar = '{"type": "structural_tag", "format": {"type": "tag", "begin": "<v>", "content": {"type": "json_schema", "json_schema": {"type": "string"}}, "end": "</v>"}}'
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
# expected: the mask says what accept does; seen: after b'<v>"a' the mask forbids b'"<', which accept_token takes
