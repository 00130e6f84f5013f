"""What an adapter says of itself, without which no run can name it."""

from __future__ import annotations

from harness.backend.contract.place import ContractBroken
from harness.backend.declared import wrongly_declared
from harness.backend.grammar import Adapter


def check_distribution_and_dialects_are_declared(adapter: Adapter) -> None:
    """The distribution is a text, the dialects are a set of known names, and the other fields by which a run
    names the adapter are what the contract says."""
    if problem := wrongly_declared(adapter):
        raise ContractBroken(problem)
