"""The formats of JSON Schema, which are asserted on request only: jsonschema's own need packages for most and
take any text with an @ for an e-mail address."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import date
from functools import cache
from ipaddress import ip_address
from typing import Any

from harness.oracle.judge.pattern import is_pattern

_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
LONGEST_HOST = r"(?=.{1,253}\Z)"
_HOST = rf"{LONGEST_HOST}{_LABEL}(?:\.{_LABEL})*"
_OCTET = r"(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
IPV4 = rf"{_OCTET}(?:\.{_OCTET}){{3}}"
_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_QUOTED = r"\"(?:[ !#-\[\]-~]|\\[ -~])*\""
"""The Quoted-string of RFC 5321, section 4.1.2."""
_TIME = r"([01][0-9]|2[0-3]):([0-5][0-9]):([0-5][0-9]|60)(?:\.[0-9]+)?(?:[Zz]|([+-])([01][0-9]|2[0-3]):([0-5][0-9]))"  # noqa: E501
_URI_CHARACTER = r"(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})"
IPV6_ADDRESS = "(?P<ip>[0-9A-Fa-f:.]+)"
"""What stands in an expression below for an IPv6 address, of which Python's `ipaddress` is asked."""
_FUTURE_ADDRESS = r"[Vv][0-9A-Fa-f]+\.[A-Za-z0-9._~!$&'()*+,;=:-]+"
"""The IPvFuture of RFC 3986, section 3.2.2."""
_AUTHORITY = rf"(?:(?:(?!@){_URI_CHARACTER})*@)?(?:\[(?:{IPV6_ADDRESS}|{_FUTURE_ADDRESS})\]|(?:(?![:@]){_URI_CHARACTER})*)(?::[0-9]*)?"  # noqa: E501
_URI_REST = rf"(?://{_AUTHORITY}(?:/{_URI_CHARACTER}*)*|/?(?:{_URI_CHARACTER}+(?:/{_URI_CHARACTER}*)*)?)"
_URI_TAIL = rf"(?:\?(?:{_URI_CHARACTER}|[/?])*)?(?:#(?:{_URI_CHARACTER}|[/?])*)?"
FORMATS = {
    "duration": r"P(?:[0-9]+W|(?=[0-9T])(?:[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?|[0-9]+M(?:[0-9]+D)?|[0-9]+D)?"
    r"(?:T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S))?)",
    "email": rf"(?:{_ATOM}(?:\.{_ATOM})*|{_QUOTED})@(?:\[(?:[Ii][Pp][Vv]6:{IPV6_ADDRESS}|{IPV4})\]|{_HOST})",
    "hostname": _HOST,
    "json-pointer": r"(?:/(?:[^/~]|~[01])*)*",
    "uuid": r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}",
    "uri": rf"[A-Za-z][A-Za-z0-9+.-]*:{_URI_REST}{_URI_TAIL}",
    "uri-reference": rf"(?:[A-Za-z][A-Za-z0-9+.-]*:|(?![^/?#]*:)){_URI_REST}{_URI_TAIL}",
}
UNCHECKED_FORMATS = frozenset(
    ("idn-email", "idn-hostname", "iri", "iri-reference", "relative-json-pointer", "uri-template")
)


@cache
def format_checker() -> Any:
    """Returns the jsonschema library's checker of all formats that the judge knows."""
    from jsonschema import FormatChecker

    checker = FormatChecker(formats=("ipv4", "ipv6"))
    checker.checks("regex")(lambda value: not isinstance(value, str) or is_pattern(value))
    checker.checks("date")(lambda value: not isinstance(value, str) or _is_date(value))
    checker.checks("time")(lambda value: not isinstance(value, str) or _is_time(value))
    checker.checks("date-time")(lambda value: not isinstance(value, str) or _is_date_time(value))
    for name, pattern in FORMATS.items():
        checker.checks(name)(
            lambda value, pattern=pattern: not isinstance(value, str) or _has_form(pattern, value)
        )
    return checker


def _has_form(pattern: str, text: str) -> bool:
    match = re.fullmatch(pattern, text)
    address = match.groupdict().get("ip") if match else None
    if address is None:
        return match is not None
    with suppress(ValueError):
        return ip_address(address).version == 6
    return False


def _is_date_time(text: str) -> bool:
    return text[10:11] in ("T", "t") and _is_date(text[:10]) and _is_time(text[11:])


def _is_date(text: str) -> bool:
    """Is the text a full-date of RFC 3339? Its years begin with 0000 (section 1), which Python's do not; that
    year has the days of 2000."""
    if not re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        return False
    with suppress(ValueError):
        return bool(date.fromisoformat(text.replace("0000-", "2000-", 1)))
    return False


def _is_time(text: str) -> bool:
    """Is the text a full-time of RFC 3339? A leap second is one only where UTC has one."""
    match = re.fullmatch(_TIME, text)
    if match is None:
        return False
    offset = (int(match[5]) * 60 + int(match[6])) * (1 if match[4] == "+" else -1) if match[4] else 0
    return match[3] != "60" or (int(match[1]) * 60 + int(match[2]) - offset) % 1440 == 1439
