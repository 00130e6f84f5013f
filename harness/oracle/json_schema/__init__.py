"""The documents of a JSON Schema as an automaton over bytes, exactly: in any spelling, which is what any
backend may allow, or in the spellings of a layout."""
