"""What a request costs: in our own decode loop with a model (`decode`), and at a live server (`live`).

In: workloads and a model, or a run and a server's address. Out: records of requests with their times, and
figures under vLLM's names.
"""
