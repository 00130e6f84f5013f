"""Generates cases for the keywords of JSON Schema, one by one and in pairs."""
