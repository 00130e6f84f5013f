"""The model of the decode loop: its shapes, its cache, its attention, and its captured graphs."""
