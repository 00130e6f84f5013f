"""Why a case fails, and since when.

In: a failing case of a run. Out: a script that shows it without us, a smaller case, a witness that says which
backend is wrong, or the version that changed it.
"""
