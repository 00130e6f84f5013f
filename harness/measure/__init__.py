"""The measuring engine: arms in processes of their own, one running at a time, interleaved, paired, over
several forks.

In: a run's cases and arms. Out: rounds of raw times in `rounds.jsonl`, and what is concluded from them with
intervals. The protocol is that of docs/measuring.md: the process is the unit, the estimate is the sum over
tokens of the minimum over passes, cold and warm are different metrics, failures are censored, and an A/A arm
must come out equivalent or the run is unproven.
"""
