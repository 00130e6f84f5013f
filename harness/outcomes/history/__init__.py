"""What became of a backend over time: its measurements with their alerts, and its conformance release by
release."""
