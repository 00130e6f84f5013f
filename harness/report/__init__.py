"""How it is shown: the HTML page, tables for the terminal, figures, the site of a history, and exports for
other programs.

In: the folders of runs, measurements and decodings. Out: text and files. Nothing is concluded here that
`outcomes` or the measuring rooms have not concluded, and whatever a backend or a user wrote is escaped.
"""
