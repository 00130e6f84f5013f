"""A sweep over the machines of a Ray cluster: the cases dealt to tasks, their rows streamed back into one
run."""
