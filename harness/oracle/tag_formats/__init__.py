"""The outputs of a structural tag of the new form (docs/structural_tags.md) as an automaton.

Its formats become a graph (`graph`) whose nodes are parts: automata of texts, each with numbered exits
(`parts`). A state of the whole automaton (`automaton`) is the set of all places in which the parts may be.
"""
