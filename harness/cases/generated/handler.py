"""What runs in the generator's process: it makes the documents that a `Generator` asks for."""

from __future__ import annotations

import base64
import sys
from dataclasses import asdict
from typing import Any

from harness.backend.process.child import Answer, Handler
from harness.cases.generated.documents import documents_for

DEEPEST = 10_000
"""The depth of Python calls at which a schema nests too deeply."""


def open_generator() -> tuple[Handler, dict[str, Any]]:
    """Returns the handler that makes the documents of a schema, which are the bytes behind the question."""
    sys.setrecursionlimit(DEEPEST)
    documents_for('{"type": "object"}', None, False)  # imports what it needs before there are children

    def answer(question: dict[str, Any], content: bytes) -> Answer:
        try:
            documents = documents_for(content.decode(), question["draft"], question["asserts_formats"])
        except RecursionError:
            documents = []
        return {
            "documents": [
                {**asdict(document), "content": base64.b64encode(document.content).decode()}
                for document in documents
            ]
        }, b""

    return answer, {}
