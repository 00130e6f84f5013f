"""One file per backend; the file's name is the backend's name."""
