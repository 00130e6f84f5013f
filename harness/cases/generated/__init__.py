"""Instances for schemas that come without any: documents that keep every keyword, and documents that break
just one of them, made from the reference automaton and judged by both validators."""
