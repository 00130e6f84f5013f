"""The user's words: the commands and their options, what they print, and the pytest plug-in.

In: a command line. Out: an exit code (0 ok, 1 a gate failed, 2 bad input, 3 incomplete run, 4 unproven), one
answer on stdout. Each command imports what it needs when it runs, so that `--help` is quick and the
coordinator stays light.
"""
