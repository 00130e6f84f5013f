"""Finds the packages, which pyproject.toml cannot do where folders are installed under other names
(package-dir)."""

from setuptools import find_packages, setup

CONTENT = ["harness.adapters", "harness.suites", "harness.results", "harness.reports"]

setup(packages=[*find_packages(include=["harness", "harness.*"]), *CONTENT])
