"""What rows mean: the outcome of a case, the metrics of a run, expected outcomes, differences between runs,
and history.

In: rows. Out: conclusions as values, the same for every surface that shows them. `outcome.py` alone decides
what is wrong with a row.
"""
