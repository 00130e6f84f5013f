"""Every command that the documentation shows is run: `tox run -e docs`."""
