"""What the page shows of single cases: the failing ones, the explorer of all, and the commands that show one
again."""
