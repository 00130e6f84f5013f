"""The drafts of JSON Schema that the judge knows, by the names that cases use."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from harness.oracle.judge.unjudgeable import Unjudgeable

DRAFT_URIS = {
    "draft3": "http://json-schema.org/draft-03/schema#",
    "draft4": "http://json-schema.org/draft-04/schema#",
    "draft6": "http://json-schema.org/draft-06/schema#",
    "draft7": "http://json-schema.org/draft-07/schema#",
    "draft2019-09": "https://json-schema.org/draft/2019-09/schema",
    "draft2020-12": "https://json-schema.org/draft/2020-12/schema",
}
"""What a schema of each draft says as its `$schema`."""


DRAFTS = tuple(DRAFT_URIS)
"""The names of the drafts, the oldest first."""


def class_name(draft: str) -> str:
    """Returns the name that the draft's class has in jsonschema and in jsonschema_rs."""
    return draft.title().replace("-", "") + "Validator"


def validator_line(draft: str, formats: bool, text: str) -> str:
    """Returns the statement with which a script makes jsonschema's validator of the schema that the variable
    `text` holds as JSON. It fetches nothing; `formats` says whether it asserts `format`: then every format
    that the newest draft knows, as our judge does, because backends do not ask for the draft either. The
    script must have imported json, jsonschema and referencing."""
    made = f"jsonschema.{class_name(draft)}"
    checker = ", format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER" if formats else ""
    return f"validator = {made}(json.loads({text}), registry=referencing.Registry(){checker})"


CLASSES = {draft: class_name(draft) for draft in DRAFTS if draft != "draft3"}
"""The class of jsonschema_rs for each draft; draft 3 is beyond it."""

DIALECT_URI = re.compile(r"https?://json-schema\.org/draft(?:-0([3467])|/(2019-09|2020-12))/schema#?")
"""What a `$schema` says that names one of them."""


@cache
def specification(uri: str) -> Any:
    """Returns how the `referencing` library finds its way in schemas of the draft with that `$schema`: what
    is no schema is left out, because that library takes each value of `dependencies` for a schema where the
    first one is one, and later ones may be lists of names."""
    import attrs
    from referencing.jsonschema import specification_with

    whole: Any = specification_with(uri)

    def subschemas_of(schema: Any) -> list[Any]:
        return [one for one in whole.subresources_of(schema) if isinstance(one, Mapping | bool)]

    return attrs.evolve(whole, subresources_of=subschemas_of)


def draft_of(schema: Any, draft: str | None) -> str:
    """Returns the draft by which a schema is read: its own, else the given one, else 2020-12.

    Raises `Unjudgeable`.
    """
    if draft is not None and draft not in DRAFTS:
        raise Unjudgeable(f"unknown draft {draft!r}; known: {', '.join(DRAFTS)}")
    named = schema.get("$schema") if isinstance(schema, dict) else None
    dialect = DIALECT_URI.fullmatch(named) if isinstance(named, str) else None
    if dialect:
        return f"draft{dialect[1] or dialect[2]}"
    return draft or "draft2020-12"
