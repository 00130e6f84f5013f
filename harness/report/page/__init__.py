"""Runs as one HTML page that needs nothing else: its sections, the summary matrix on top
(`matrix` and the four files beside it), and what they show."""
