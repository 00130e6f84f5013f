"""What goes in: one suite per file, first line `{"suite", "version", "description"}`, then one case
per line.
"""
