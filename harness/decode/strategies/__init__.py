"""Strategies: what is written without asking the model. One file each; its name is the strategy's name."""
