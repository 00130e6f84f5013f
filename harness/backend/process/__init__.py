"""A process that holds what may be lost, and answers requests: its client and its child."""
