"""The drafts of JSON Schema that the judge knows, by the names that cases use."""

from __future__ import annotations

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
