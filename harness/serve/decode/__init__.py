"""Decoding with a real model: models, workloads, settings, and what they measure (docs/decoding.md)."""
