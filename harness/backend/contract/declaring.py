"""What an adapter says of itself, without which no run can name it."""

from __future__ import annotations

from harness.backend.contract.place import ContractBroken
from harness.backend.declared import wrongly_declared
from harness.backend.grammar import Adapter
from harness.backend.options import option_table
from harness.errors import error_text


def check_distribution_and_dialects_are_declared(adapter: Adapter) -> None:
    """The distribution is a text, the dialects are a set of known names, the other fields by which a run
    names the adapter are what the contract says, and every option has a type and a default."""
    if problem := wrongly_declared(adapter):
        raise ContractBroken(problem)
    try:
        option_table(type(adapter))
    except Exception as error:  # an annotation is a text that may hold anything
        raise ContractBroken(f"the options of its __init__ cannot be read: {error_text(error)}") from error
