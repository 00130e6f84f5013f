"""What rows mean: the outcome of a case, the metrics of a run, expected outcomes, differences between runs,
and history.

In: rows. Out: conclusions as values, the same for every surface that shows them. `outcome` alone decides what
is wrong with a row, and `summary` counts the rows of a run once for all. `compare` holds two arms or runs
side by side, `expected` a run against its record, `gate` says whether either fails; `history` keeps many
runs, and `result` is one run for other programs.
"""
