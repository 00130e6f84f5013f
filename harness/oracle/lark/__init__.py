"""The reference automaton of Lark grammars (docs/lark.md), in two readings: every way to split a text into
lexemes counts, or the one of a lexer."""
