"""Tables of a run for the terminal, as Markdown, CSV or JSON."""
