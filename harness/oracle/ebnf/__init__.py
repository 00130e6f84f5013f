"""The reference automaton of EBNF grammars (docs/ebnf.md) and of llama.cpp's GBNF."""
