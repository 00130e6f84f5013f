"""The keywords of JSON Schema, one by one and in pairs: generated cases, and the table of what a backend makes of each keyword."""
