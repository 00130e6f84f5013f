"""One output through one grammar: the replay of an instance, and the decode loop with its strategies.

In: a compiled grammar and a text, or a model. Out: an observation of what the backend did and how long each
call took. Only the backend's call stands between two readings of the clock.
"""
