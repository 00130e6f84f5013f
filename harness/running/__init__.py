"""Every case through every backend, isolated: what is lost costs one case.

In: a request and the plan of its cases. Out: rows on disk. `session` leads from the request to the last line.
The coordinator never imports a backend; it has a `slot` for each of the `--jobs`, whose worker process loads
one backend and forks a child that walks cases. `endings` decides whose fault a loss is, `case_rows` makes the
rows of a case, and `recorder` writes them. Shards and Ray spread the cases over machines.
"""
