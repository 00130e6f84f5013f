"""The formats that the judge asserts, as regular expressions over the whole string
(harness/oracle/judge/formats.py).

A host name with a punycode label is allowed as the judge's expression has it; the judge itself gives no
verdict on one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from harness.oracle.automaton import NoOracle
from harness.oracle.judge.formats import FORMATS, IPV4, IPV6_ADDRESS, LONGEST_HOST, UNCHECKED_FORMATS

_FOURTH = "(?:0[48]|[2468][048]|[13579][26])"
_LEAP_YEAR = f"(?:[0-9]{{2}}{_FOURTH}|(?:00|{_FOURTH})00)"
_DAY = (
    "(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    "|02-(?:0[1-9]|1[0-9]|2[0-8]))"
)
_DATE = f"(?:[0-9]{{4}}-{_DAY}|{_LEAP_YEAR}-02-29)"
_FRACTION = r"(?:\.[0-9]+)?"
_HOUR, _MINUTE = "(?:[01][0-9]|2[0-3])", "[0-5][0-9]"


class Format(NamedTuple):
    """A string has the format if it matches `pattern` and does not match `but_not`: both as a whole, and in
    the syntax of the `regex` library."""

    pattern: str
    but_not: str | None = None


def format_of(name: str) -> Format | None:
    """Returns the format of this name; None where it asserts nothing.

    Raises NoOracle for a format that the judge does not check, or that is not a regular language.
    """
    if name in UNCHECKED_FORMATS:
        raise NoOracle(f"no judge for the format {name}")
    if name == "regex":
        raise NoOracle("the format regex is no regular language")
    own: dict[str, Callable[[], str]] = {
        "date": lambda: _DATE,
        "ipv4": lambda: IPV4,
        "ipv6": _ipv6,
        "time": _time,
        "date-time": lambda: rf"{_DATE}[Tt](?:{_time()})",
    }
    if name in own:
        return Format(own[name]())
    pattern = FORMATS.get(name)
    if pattern is None:
        return None
    pattern = pattern.replace(IPV6_ADDRESS, _ipv6())
    if LONGEST_HOST not in pattern:
        return Format(pattern)
    # The length of the host, which no `@` is in, is a language of its own: together they are too large a one.
    pattern = pattern.replace(LONGEST_HOST, "")
    return Format(pattern, "(?s:.*)@[^@]{254,}" if name == "email" else "(?s:.{254,})")


@cache
def _ipv6() -> str:
    """Returns the pattern of an address as RFC 3986, section 3.2.2, has it."""
    group = "[0-9A-Fa-f]{1,4}"
    last = f"(?:{group}:{group}|{IPV4})"
    forms = [f"(?:{group}:){{6}}{last}"]
    for before in range(8):
        begin = f"(?:(?:{group}:){{0,{before - 1}}}{group})?" if before else ""
        behind = 7 - before
        end = "" if behind == 0 else group if behind == 1 else f"(?:{group}:){{{behind - 2}}}{last}"
        forms.append(f"{begin}::{end}")
    return f"(?:{'|'.join(forms)})"


@cache
def _time() -> str:
    """Returns the pattern of a full-time of RFC 3339; a leap second is one only where UTC has one, at
    23:59:60."""
    offset = rf"[+-]{_HOUR}:{_MINUTE}"
    hours = []
    for hour in range(24):
        leaps = []
        for minute in range(60):
            later = 60 * hour + minute + 1  # what the offset is where the minute is the last of a day in UTC
            earlier = 1439 - 60 * hour - minute
            offsets = rf"\+{_clock(later % 1440)}|-{_clock(earlier)}"
            leaps.append(rf"{minute:02}:60{_FRACTION}(?:{offsets})")
        hours.append(rf"{hour:02}:(?:{'|'.join(leaps)})")
    return "|".join(
        (
            rf"{_HOUR}:{_MINUTE}:{_MINUTE}{_FRACTION}(?:[Zz]|{offset})",
            rf"23:59:60{_FRACTION}[Zz]",
            *hours,
        )
    )


def _clock(minutes: int) -> str:
    return f"{minutes // 60:02}:{minutes % 60:02}"
