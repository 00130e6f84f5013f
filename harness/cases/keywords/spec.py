"""Describes what one case is about, before its instances are found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Schema = dict[str, Any]


@dataclass(frozen=True)
class Spec:
    """A schema, and the keyword that alone must decide some of its instances."""

    schema: Schema
    decides: str
    """The keyword of the node at `path` without which the forbidden instances are valid."""
    keyword: str = ""
    """The keyword that the case is about, where it is not the one that decides: `$anchor` constrains nothing
    by itself, the `$ref` to it does."""
    value: str = ""
    """The value of the keyword, where there are cases for several values."""
    beside: str = ""
    """The other keyword of a pair."""
    pair: str = ""
    """`first+second`; empty where the case is about one keyword."""
    place: str = ""
    """The place in the schema at which the keyword stands; empty for the root."""
    path: tuple[str | int, ...] = ()
    """The keys and indices that lead to the node that has the keyword."""
    options: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Returns the name of the case."""
        if self.pair:
            return f"{self.pair}: {self.decides} decides"
        about = f"{self.keyword or self.decides} {self.value}".rstrip()
        return f"{about} in {self.place}" if self.place else about

    @property
    def tags(self) -> list[str]:
        """Returns the tags of the case, which the truth table reads."""
        tags = [f"keyword:{self.keyword or self.decides}"]
        tags += [f"value:{self.value}"] if self.value else []
        tags += [f"pair:{self.pair}"] if self.pair else []
        tags += [f"at:{self.place}"] if self.place else []
        return [*tags, f"decides:{self.decides}"]


def without(schema: Any, path: tuple[str | int, ...], keyword: str) -> Any:
    """Returns the schema without the keyword at the node at `path`."""
    if not path:
        return {name: value for name, value in schema.items() if name != keyword}
    step, rest = path[0], path[1:]
    if isinstance(step, int):
        return [
            without(member, rest, keyword) if number == step else member
            for number, member in enumerate(schema)
        ]
    return {name: without(value, rest, keyword) if name == step else value for name, value in schema.items()}


def last(schema: Schema, keyword: str) -> Schema:
    """Returns the same schema with the keyword written after all others."""
    return {**without(schema, (), keyword), keyword: schema[keyword]}
