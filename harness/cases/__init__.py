"""What goes into a run: grammars with their instances, and where they come from.

In: suites of ours, files and folders of the user, tool lists, downloaded corpora. Out: cases whose ids are
hashes of their grammars, and the plan of a run, written as `cases.jsonl`. What cannot be read is refused in
one line that says where.
"""
