"""The decode loop, which the harness owns: strategies and the mechanisms of serving engines
(docs/decoding.md)."""
