# xgrammar 0.2.9
vocabulary = [b'a', b'b', b'ab', b'']
walk = [2, 2, 2, 2, 3]
grammar = '{"type": "structural_tag", "format": {"type": "sequence", "elements": [{"type": "plus", "content": {"type": "token", "token": 2}}, {"type": "const_string", "value": "ab"}]}}'
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
# expected: the output may end behind four times the token "ab": three of them are the tokens, and the last is the text;
# seen: it may end behind two or three of them, and not behind four
