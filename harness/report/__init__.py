"""Runs as one HTML page that needs nothing else."""

from harness.report.page import write_report

__all__ = ["write_report"]
