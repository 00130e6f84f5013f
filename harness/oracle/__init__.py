"""Reference automata: what a grammar truly allows, byte by byte, independent of every backend."""
