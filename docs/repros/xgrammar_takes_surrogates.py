# xgrammar 0.2.9
vocabulary = [bytes([byte]) for byte in range(256)] + [b'']
walk = [*b'\xed\xa0']
grammar = '[^a]'
try:
    b'\xed\xa0\x80'.decode()
except UnicodeDecodeError as error:
    print("no text begins so:", error)
import json, xgrammar
info = xgrammar.TokenizerInfo(vocabulary, xgrammar.VocabType.RAW, stop_token_ids=[len(vocabulary) - 1])
compiled = xgrammar.GrammarCompiler(info).compile_regex(grammar)
matcher = xgrammar.GrammarMatcher(compiled)
mask = xgrammar.allocate_token_bitmask(1, len(vocabulary))
for token in walk:
    matcher.fill_next_token_bitmask(mask)
    allowed = bool(mask[0, token // 32].item() >> token % 32 & 1)
    accepted = matcher.accept_token(token)
    print(vocabulary[token], allowed, accepted)
    if not (allowed and accepted):
        break
# expected: the last token is refused, because no output goes on with it; seen: seen 1 time; after b'\xed' the mask allows and accept_token takes b'\xa0', one of 32 such tokens
