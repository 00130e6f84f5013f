"""Runs as one HTML page that needs nothing else: its sections, and what they show."""
