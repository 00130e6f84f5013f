"""Which subschema a reference of a schema stands for."""

from __future__ import annotations

import re
from typing import Any

from harness.oracle.automaton import NoOracle
from harness.oracle.judge.drafts import DRAFT_URIS


class References:
    """The references of one schema. A subschema comes with its resolver, which knows the identifiers around
    it."""

    def __init__(self, document: Any, text: str, draft: str) -> None:
        """`text` is that of the document. Raises NoOracle where its identifiers cannot be read."""
        from jsonschema_specifications import REGISTRY
        from referencing.jsonschema import specification_with

        self._draft = draft
        try:
            self._specification: Any = specification_with(DRAFT_URIS[draft])
            resource = self._specification.create_resource(document)
            registry: Any = REGISTRY.with_resource("", resource)
            self.root = registry.resolver_with_root(resource)
            """The resolver of the document."""
        except Exception as error:  # a broken identifier raises whatever the library's parser meets
            raise NoOracle(f"the schema's identifiers cannot be read: {error}"[:200]) from error
        self._anchors = re.findall(r'"\$dynamicAnchor"\s*:\s*"([^"]*)"', text)
        self._is_recursive = '"$recursiveAnchor"' in text

    def inside(self, schema: Any, resolver: Any) -> Any:
        """Returns the resolver within a subschema, which may have an identifier of its own."""
        identifier = schema.get("id" if self._draft == "draft4" else "$id")
        if isinstance(identifier, str) and not identifier.startswith("#"):
            return resolver.in_subresource(self._specification.create_resource(schema))
        return resolver

    def followed(self, keyword: str, target: str, resolver: Any) -> tuple[Any, Any]:
        """The subschema that `$ref`, `$dynamicRef` or `$recursiveRef` stands for, and its resolver.

        Raises NoOracle where that is not in the schema, or hangs on the way on which the reference was
        reached.
        """
        contents, resolved = self._looked_up(target, resolver)
        if keyword == "$dynamicRef" and isinstance(contents, dict) and "$dynamicAnchor" in contents:
            if len({*self._anchors}) < len(self._anchors) or "meta" in self._anchors:
                raise NoOracle("$dynamicRef is resolved while a value is read")
            if contents["$dynamicAnchor"] == "meta":
                return self._looked_up(DRAFT_URIS[self._draft], resolver)
        if keyword == "$recursiveRef" and isinstance(contents, dict) and contents.get("$recursiveAnchor"):
            if self._is_recursive:
                raise NoOracle("$recursiveRef is resolved while a value is read")
            return self._looked_up(DRAFT_URIS[self._draft], resolver)
        return contents, resolved

    def _looked_up(self, target: str, resolver: Any) -> tuple[Any, Any]:
        from referencing.exceptions import Unresolvable

        try:
            resolved = resolver.lookup(target)
        except Unresolvable as error:
            raise NoOracle(f"the reference {target[:80]!r} points out of the schema") from error
        except Exception as error:
            raise NoOracle(f"the reference {target[:80]!r} cannot be followed: {error}"[:200]) from error
        return resolved.contents, resolved.resolver
