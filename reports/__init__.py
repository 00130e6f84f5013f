"""How it is shown: the page's template, style and script."""
