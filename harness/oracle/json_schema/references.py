"""Which subschema a reference of a schema stands for."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

from harness.oracle.automaton import NoOracle
from harness.oracle.judge.drafts import DRAFT_URIS, specification
from harness.oracle.judge.references import raise_if_deep
from harness.oracle.judge.schema import schema_error

KEYWORDS = {"draft2019-09": ("$ref", "$recursiveRef"), "draft2020-12": ("$ref", "$dynamicRef")}
"""The keywords that refer to a subschema, for the drafts that know another one than `$ref`."""


class References:
    """The references of one schema. A subschema comes with its resolver, which knows the identifiers around
    it."""

    def __init__(self, document: Any, draft: str) -> None:
        """Raises NoOracle where the identifiers of the document cannot be read."""
        from jsonschema_specifications import REGISTRY

        self.keywords = KEYWORDS.get(draft, ("$ref",))
        self._draft = draft
        self._document = document
        try:
            self._specification = specification(DRAFT_URIS[draft])
            resource = self._specification.create_resource(document)
            registry: Any = REGISTRY.with_resource("", resource)
            self.root = registry.resolver_with_root(resource)
            """The resolver of the document."""
        except Exception as error:  # a broken identifier raises whatever the library's parser meets
            raise NoOracle(f"the schema's identifiers cannot be read: {error}"[:200]) from error

    def inside(self, schema: Any, resolver: Any) -> Any:
        """Returns the resolver within a subschema, which may have an identifier of its own."""
        if not isinstance(schema, dict):
            return resolver
        identifier = schema.get("id" if self._draft == "draft4" else "$id")
        if isinstance(identifier, str) and not identifier.startswith("#"):
            try:
                return resolver.in_subresource(self._specification.create_resource(schema))
            except ValueError as error:
                raise NoOracle(f"the identifier {identifier[:80]!r} cannot be read: {error}"[:200]) from error
        return resolver

    def followed(self, keyword: str, target: str, resolver: Any) -> tuple[Any, Any]:
        """Returns the subschema that `$ref`, `$dynamicRef` or `$recursiveRef` stands for, and the resolver
        within it.

        Raises NoOracle where that is not in the schema, is none, or hangs on the way on which the reference
        was reached.
        """
        contents, resolved = self._followed(keyword, target, resolver)
        if id(contents) not in self._checked:
            wrong = schema_error(contents, self._draft)
            if wrong is not None:
                raise NoOracle(f"the reference {target[:80]!r} points to what is no schema: {wrong}"[:200])
            self._checked[id(contents)] = contents
        return contents, resolved

    @cached_property
    def _checked(self) -> dict[int, Any]:
        """Returns the schemas that are known to be right, by their ids: at first those at which the
        meta-schema has looked, which are not all that a reference can point to."""
        found: dict[int, Any] = {}
        waiting = [self._specification.create_resource(self._document)]
        for resource in waiting:
            found[id(resource.contents)] = resource.contents
            waiting += resource.subresources()
        return found

    @cached_property
    def _anchors(self) -> list[str]:
        """Returns the names of the dynamic anchors, and of what looks like one."""
        return [name for name in _values_of(self._document, "$dynamicAnchor") if isinstance(name, str)]

    def _followed(self, keyword: str, target: str, resolver: Any) -> tuple[Any, Any]:
        contents, resolved = self._looked_up(target, resolver)
        if keyword == "$ref" and isinstance(contents, dict) and "$dynamicAnchor" in contents:
            name = target.partition("#")[2]
            if contents["$dynamicAnchor"] == name and (self._anchors.count(name) > 1 or name == "meta"):
                raise NoOracle("validators follow a $ref to a dynamic anchor in two ways")
        if keyword == "$dynamicRef" and isinstance(contents, dict) and "$dynamicAnchor" in contents:
            if len({*self._anchors}) < len(self._anchors) or "meta" in self._anchors:
                raise NoOracle("$dynamicRef is resolved while a value is read")
            if contents["$dynamicAnchor"] == "meta":
                return self._looked_up(DRAFT_URIS[self._draft], resolver)
        if keyword == "$recursiveRef" and isinstance(contents, dict) and contents.get("$recursiveAnchor"):
            if any(_values_of(self._document, "$recursiveAnchor")):
                raise NoOracle("$recursiveRef is resolved while a value is read")
            return self._looked_up(DRAFT_URIS[self._draft], resolver)
        return contents, resolved

    def _looked_up(self, target: str, resolver: Any) -> tuple[Any, Any]:
        from referencing.exceptions import Unresolvable

        raise_if_deep()
        try:
            resolved = resolver.lookup(target)
        except Unresolvable as error:
            raise NoOracle(f"the reference {target[:80]!r} points out of the schema") from error
        except Exception as error:
            raise NoOracle(f"the reference {target[:80]!r} cannot be followed: {error}"[:200]) from error
        return resolved.contents, resolved.resolver


def _values_of(document: Any, keyword: str) -> Iterator[Any]:
    """Yields what stands beside the keyword, wherever that is in the document."""
    waiting = [document]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            if keyword in value:
                yield value[keyword]
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
