"""Which subschema a reference stands for, and where a subschema has an identifier of its own, as the judge
follows them."""

from __future__ import annotations

from contextlib import suppress
from typing import Any
from urllib.parse import urldefrag, urljoin

from harness.oracle.judge.drafts import specification
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
    if not _has(resolved.contents, "$dynamicAnchor", name):
        return resolved
    named = resolver._base_uri
    if not target.startswith("#"):  # urljoin would lose a base like `urn:x` of a mere name
        named = urldefrag(urljoin(named, target))[0]
    found = _resource_of(resolved, named, name)
    if keyword == "$ref" and found != named:
        raise Unjudgeable("a `$ref` to a dynamic anchor, which validators follow in two ways")
    # The library keeps the base that the reference names.
    base = resolver._evolve(base_uri=found, registry=resolved.resolver._registry)
    return type(resolved)(contents=resolved.contents, resolver=base)


def _resource_of(resolved: Any, named: str, name: str) -> str:
    """Returns the identifier of the resource in which the dynamic anchor stands that was found: the one that
    the reference names, or one on the way to it."""
    from referencing.exceptions import NoSuchAnchor

    on_the_way: list[str] = [uri for uri, _ in resolved.resolver.dynamic_scope()]
    for uri in (named, *on_the_way):
        with suppress(NoSuchAnchor):
            anchor = resolved.resolver._registry.anchor(uri, name).value
            if anchor.resource.contents is resolved.contents:
                return uri
    return named


def inner_resolver(validator: Any, schema: Any) -> Any:
    """Returns the resolver of a subschema of the validator's, which may have an identifier of its own."""
    resource = specification(validator.META_SCHEMA["$schema"]).create_resource(schema)
    return validator._resolver.in_subresource(resource)


def entered(outer: Any, inner: Any) -> Any:
    """Returns the inner resolver with the outer one's resource on the way to it, where it is in another. The
    `referencing` library adds that for a reference, but not for a subschema with an identifier."""
    if inner._previous is outer._previous and inner._base_uri != outer._base_uri:
        return outer._evolve(base_uri=inner._base_uri, registry=inner._registry)
    return inner


def inside(validator: Any, schema: Any) -> Any:
    """Returns the validator of a subschema that is applied to the same instance. Raises `Unjudgeable` for one
    of another draft: what that evaluates is defined nowhere."""
    return _evolved(validator, schema, inner_resolver(validator, schema))


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
