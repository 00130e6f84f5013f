"""Charts as SVG and the estimates that they draw."""
