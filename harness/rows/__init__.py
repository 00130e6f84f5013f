"""Stores what was observed: the rows of a run, its first and last line, its samples and its cases.

In: observations, appended before the next case starts. Out: the same, checked against a published JSON Schema
on writing and on reading. No mean, percentile or verdict is stored here; `outcomes` concludes them.
"""
