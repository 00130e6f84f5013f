"""Environments that hold one version of a backend each, built with pip and kept for the next run."""
