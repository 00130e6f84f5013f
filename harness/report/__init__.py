"""How it is shown: the HTML page, tables for the terminal, figures, the site of a history, and exports for
other programs.

In: the folders of runs, measurements and decodings. Out: text and files: `page` with its sections and the
summary matrix, `cases` for single cases on it, `tables` and `run_summary` for the terminal, `export` for
other programs, `site` for a history. Nothing is concluded here that `outcomes` or the measuring rooms have
not concluded, and whatever a backend or a user wrote is escaped.
"""
