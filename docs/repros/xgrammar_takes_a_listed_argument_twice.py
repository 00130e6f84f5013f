# xgrammar 0.2.9
vocabulary = [b'<parameter=a>x</parameter>', b'<parameter=a>4</parameter>', b'']
walk = [0, 1]
grammar = '{"type": "structural_tag", "format": {"type": "json_schema", "style": "qwen_xml", "json_schema": {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": {"type": "integer"}}}}'
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
# expected: the second token is refused, because a was written; seen: it is allowed
