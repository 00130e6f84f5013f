"""Decoding with a real model loop: models, strategies, serving mechanisms, and what they measure (DESIGN.md, section 8)."""
