"""Everything that stands between the harness and a backend.

In: the text after `--backends`, and the files in `adapters/`. Out: adapters that keep the contract, each in
the environment that holds its version, in a process of its own, and with a vocabulary. Nothing here knows
what a backend should answer.
"""
