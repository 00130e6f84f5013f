# xgrammar 0.2.9
vocabulary = [b'a', b'b', b'']
grammar = '{"type": "structural_tag", "format": {"type": "repeat", "min": 1, "max": 2, "content": {"type": "token_dispatch", "rules": [[0, {"type": "const_string", "value": "b"}]]}}}'
import xgrammar
info = xgrammar.TokenizerInfo(vocabulary, xgrammar.VocabType.RAW, stop_token_ids=[len(vocabulary) - 1])
compiled = xgrammar.GrammarCompiler(info).compile_structural_tag(grammar)
print("compiled")
# expected: it compiles, as it does with star in place of repeat; seen: segmentation fault
