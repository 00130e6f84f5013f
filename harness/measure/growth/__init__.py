"""How a backend's cost grows: families of grammars by size, each size measured in a fresh process, a power or
an exponential fitted to the times, and a verdict in a word."""
