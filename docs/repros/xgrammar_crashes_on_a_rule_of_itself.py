# xgrammar 0.2.9
vocabulary = [b'a', b'']
grammar = 'start: [start]'
import xgrammar
info = xgrammar.TokenizerInfo(vocabulary, xgrammar.VocabType.RAW, stop_token_ids=[len(vocabulary) - 1])
compiled = xgrammar.GrammarCompiler(info).compile_lark(grammar)
print("compiled")
# expected: it compiles (the empty text is its only sentence), or is refused; seen: segmentation fault
