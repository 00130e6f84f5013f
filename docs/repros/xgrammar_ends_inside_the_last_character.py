# xgrammar 0.2.9
vocabulary = [bytes([byte]) for byte in range(256)] + [b'']
walk = [*'é'.encode(), 256]
grammar = '{"type": "structural_tag", "format": {"type": "any_text", "excludes": ["x"], "max_chars": 1}}'
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
# expected: both bytes of the one character are taken ("max_chars limits the region by Unicode codepoints"), as without
# excludes; seen: the first is, and the second is not, so that the output can only end inside the character
