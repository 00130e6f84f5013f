"""The site of a history: dashboard, trends, badges and the Atom feed."""
