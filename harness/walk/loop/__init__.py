"""The decode loop, which the harness owns: strategies and the mechanisms of serving engines (DESIGN.md,
section 8)."""
