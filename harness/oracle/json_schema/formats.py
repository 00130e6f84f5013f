"""The formats that the judge asserts, as regular expressions over the whole string
(harness/oracle/judge/formats.py)."""

from __future__ import annotations

from harness.oracle.automaton import NoOracle
from harness.oracle.judge.formats import FORMATS, UNCHECKED_FORMATS

_LEAP_YEAR = r"(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)"
_DATE = (
    r"(?!0000)(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    rf"|02-(?:0[1-9]|1[0-9]|2[0-8]))|{_LEAP_YEAR}-02-29)"
)
_OCTET = r"(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_IPV4 = rf"{_OCTET}(?:\.{_OCTET}){{3}}"


def format_pattern(name: str) -> str | None:
    """The expression of the format, for the `regex` library; None where the format asserts nothing.

    Raises NoOracle for a format that the judge does not check, or that is not written as an expression here.
    """
    if name in UNCHECKED_FORMATS:
        raise NoOracle(f"no judge for the format {name}")
    if name == "date":
        return _DATE
    if name == "ipv4":
        return _IPV4
    if name in ("ipv6", "time", "date-time", "email", "uri", "uri-reference", "hostname", "regex"):
        raise NoOracle(f"the format {name} is not written as an expression yet")
    return FORMATS.get(name)
