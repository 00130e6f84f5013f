"""Which subschema a reference stands for, and where a subschema has an identifier of its own, as the judge
follows them."""

from __future__ import annotations

from typing import Any
from urllib.parse import urldefrag, urljoin

from harness.oracle.judge.unjudgeable import Unjudgeable

REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
"""The keywords that refer to a subschema. Each validator has those of its draft."""
ROOM = 50
"""More Python calls than the `referencing` library needs, one within the other."""


def raise_if_deep(room: int = ROOM) -> None:
    """Raises RecursionError where there is no room for so many calls: out of the Rust that the `referencing`
    library calls, that would come as a panic."""
    if room:
        raise_if_deep(room - 1)


def followed(validator: Any, keyword: str, target: str) -> Any:
    """Returns what a reference stands for, with its resolver. Raises what the `referencing` library does, and
    `Unjudgeable` where that library follows a `$ref` dynamically."""
    raise_if_deep()
    resolver = validator._resolver
    if keyword == "$recursiveRef":
        return _recursive(resolver)
    resolved = resolver.lookup(target)
    name = target.partition("#")[2]
    if keyword == "$ref" and _has(resolved.contents, "$dynamicAnchor", name):
        static = resolver._registry.resolver(urldefrag(urljoin(resolver._base_uri, target))[0])
        if static.lookup(f"#{name}").contents is not resolved.contents:
            raise Unjudgeable("a `$ref` to a dynamic anchor, which validators follow in two ways")
    return resolved


def inside(validator: Any, schema: Any) -> Any:
    """Returns the validator of a subschema that is applied to the same instance. Raises `Unjudgeable` for one
    of another draft: what that evaluates is defined nowhere."""
    from referencing.jsonschema import specification_with

    specification: Any = specification_with(validator.META_SCHEMA["$schema"])
    resolver = validator._resolver.in_subresource(specification.create_resource(schema))
    return _evolved(validator, schema, resolver)


def behind(validator: Any, keyword: str, target: str) -> Any:
    """Returns the validator of what a reference stands for. Raises as `followed` and `inside` do."""
    resolved = followed(validator, keyword, target)
    return _evolved(validator, resolved.contents, resolved.resolver)


def _evolved(validator: Any, schema: Any, resolver: Any) -> Any:
    evolved = validator.evolve(schema=schema, _resolver=resolver)
    if type(evolved) is not type(validator):
        raise Unjudgeable("what is unevaluated depends on a subschema of another draft")
    return evolved


def _recursive(resolver: Any) -> Any:
    """Returns what `$recursiveRef` stands for: the outermost schema with `$recursiveAnchor` on the way to it.
    The library's own search ends at the first schema without one."""
    resolved = resolver.lookup("#")
    if _has(resolved.contents, "$recursiveAnchor", True):
        for uri, _ in resolver.dynamic_scope():
            outer = resolver.lookup(uri)
            if _has(outer.contents, "$recursiveAnchor", True):
                resolved = outer
    return resolved


def _has(schema: Any, keyword: str, value: Any) -> bool:
    return isinstance(schema, dict) and keyword in schema and schema[keyword] == value
