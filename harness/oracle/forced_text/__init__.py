"""Jumping over what is forced: where a jump leads, which tokens it becomes, and how much there is to gain."""
