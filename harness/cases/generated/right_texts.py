"""A schema whose strings that are to have a format are a few texts that have it by everybody's reading.

A document that is to break one keyword must not have a text that a backend refuses for its format, and the
shortest texts of a format, such as `0@0` and `A:`, are those about which backends are not of one mind.
"""

from __future__ import annotations

from harness.cases.case import json_text
from harness.cases.subschemas import Schema, at, is_before_2019, object_subschemas, put
from harness.oracle.judge.second import second_verdict

RIGHT_TEXTS: dict[str, tuple[str, str]] = {
    "date-time": ("2024-01-02T03:04:05Z", "2024-01-03T03:04:05Z"),
    "date": ("2024-01-02", "2024-01-03"),
    "time": ("03:04:05Z", "04:04:05Z"),
    "duration": ("P1D", "P2D"),
    "email": ("ada@example.com", "bob@example.com"),
    "hostname": ("example.com", "example.org"),
    "ipv4": ("192.0.2.1", "192.0.2.2"),
    "ipv6": ("2001:db8::1", "2001:db8::2"),
    "uri": ("https://example.com/a", "https://example.com/b"),
    "uri-reference": ("https://example.com/a", "https://example.com/b"),
    "uuid": ("123e4567-e89b-42d3-a456-426614174000", "123e4567-e89b-42d3-a456-426614174001"),
    "json-pointer": ("/a", "/b"),
}
"""Two texts of each format, so that two items can differ."""
OF_STRINGS = frozenset(("minLength", "maxLength", "pattern", "enum", "const"))
"""The keywords beside a format that a text must keep too."""


def with_right_texts(schema: Schema, draft: str) -> Schema | None:
    """Returns the schema with these texts only where a format is asked for; None where there are none for a
    format, or none that keeps what stands beside it."""
    made = schema
    for path, node in object_subschemas(schema):
        name = node.get("format")
        if not isinstance(name, str) or ("$ref" in node and is_before_2019(draft)):
            continue
        beside = json_text({keyword: value for keyword, value in node.items() if keyword in OF_STRINGS})
        texts = [
            text
            for text in RIGHT_TEXTS.get(name, ())
            if second_verdict(beside, json_text(text).encode(), draft, False)[0]
        ]
        if not texts:
            return None
        node = at(made, path)  # what stands below it was changed, if that came first
        others = node["allOf"] if isinstance(node.get("allOf"), list) else []
        demand = {"anyOf": [{"not": {"type": "string"}}, {"enum": texts}]}
        made = put(made, path, {**node, "allOf": [*others, demand]})
    return made
