"""Decoding with a real model: models, workloads, settings, and what they measure (DESIGN.md, section 8)."""
