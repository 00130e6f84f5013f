"""The documents of a JSON Schema as an automaton over bytes, exactly: what any backend may allow, in any
spelling."""
