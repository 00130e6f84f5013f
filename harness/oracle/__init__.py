"""What is true of a grammar, told by no backend: which bytes it allows, which tokens, which documents, and
which text it forces.

In: a grammar, and for tokens a vocabulary. Out: a reference automaton with exact masks, or `NoOracle` where
there is none; for JSON Schema the judgement of two independent validators.
"""
