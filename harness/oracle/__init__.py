"""What is true of a grammar, told by no backend: which bytes it allows, which tokens, which documents, and
which text it forces.

In: a grammar, and for tokens a vocabulary. Out: a reference automaton with exact masks, or `NoOracle` where
there is none. For JSON Schema the automaton (`json_schema`) is that of its documents in every spelling, of
which a backend may leave some out, and so it is within structural tags (`structural_tag`); documents are
judged by two independent validators (`judge`). `reference` answers as a backend would, from the automata
alone.
"""
