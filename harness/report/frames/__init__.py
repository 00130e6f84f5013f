"""A run as data frames of pandas, for whoever goes on in Python: `harness.load`.

In: a folder with a run, a measurement or a decoding, as written or as published, or with several of these
below it. Out: one `Run` with five tables, each with one line per thing and one column per fact. What a row
means is asked of `harness.outcomes`; nothing is concluded here.
"""
