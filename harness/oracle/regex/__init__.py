"""The reference automaton of regular expressions, in the dialects of Python's `regex`, ECMA-262 and Rust, by
Unicode version."""
