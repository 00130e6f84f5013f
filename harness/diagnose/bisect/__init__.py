"""The version of a backend in which a case, or its compile time, changed."""
