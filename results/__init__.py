"""What was observed: the schema of a row, baselines, and published runs."""
