"""The interface that serving engines have today, and ours, each seen as the other."""
