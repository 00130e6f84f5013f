# xgrammar 0.2.9
vocabulary = [b'<|open|>argument key="a" type="number"<|sep|>', b'word', b'<|close|>argument<|sep|>', b'']
walk = [0, 1, 2]
grammar = '{"type": "structural_tag", "format": {"type": "json_schema", "style": "kimi_k3_xml", "json_schema": {"type": "object", "properties": {"a": {"type": ["string", "integer"]}}, "required": ["a"]}}}'
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
# expected: word is refused, because it is no number; seen: all three are allowed
