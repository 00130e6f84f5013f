"""Every case through every backend, isolated: what is lost costs one case.

In: a request and the plan of its cases. Out: rows on disk. The coordinator never imports a backend; a worker
process loads one and forks a child that walks cases; shards and Ray spread the cases over machines.
"""
