"""Pages to test with: one of strangers' strings, one of a token refused; and what is on a page."""

from __future__ import annotations

import base64
import gzip
import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import synthetic

from harness.backend.arm import Arm
from harness.backend.vocabulary import load_vocabulary
from harness.cases.case import Case
from harness.rows.row import Finding

EVIL = (
    "</script><script>alert(9)</script>",
    "<!-- <script>",
    "line\u2028end",
    "javascript:alert(8)",
    '"><img src=x onerror=alert(7)>',
)


def hostile_run(folder: Path) -> Path:
    """Hostile strings in every field that a case, a backend or a version can fill."""
    evil = [*EVIL, *synthetic.HOSTILE]
    arms = [
        Arm("alpha", EVIL[0], "", "alpha", ("json_schema",), "bitmask"),
        Arm(EVIL[4], "1", EVIL[1], EVIL[2], (), "bool"),
    ]
    cases: list[tuple[str, Case]] = []
    groups: list[list[synthetic.Walk]] = []
    for number, text in enumerate(evil):
        instances: list[tuple[str, bytes, bool | None]] = [
            (text, text.encode("utf-8", "replace"), True),
            ("broken", b'"\xff\xfe' + bytes([number]), False),
            ("x", b"1" * 1_000_000, True),
        ]
        case = synthetic.case(
            number, instances[: 3 if number == 4 else 2], text, json.dumps({"const": text}), [text, "type"]
        )
        cases.append((evil[-1 - number], case))
        for arm in arms:
            fields: dict[str, Any] = {
                "backend": arm.backend,
                "backend_version": arm.version,
                "options": arm.options,
                "suite": evil[-1 - number],
            }
            fields |= {
                "case": case.name,
                "case_id": case.id,
                "tags": case.tags,
                "text": text,
                "phase": "accept",
                "status": "backend_error",
            }
            finding = Finding(
                "a check",
                2,
                text,
                cause=text[:20],
                instance=0,
                over=3,
                under=1,
                examples=("fffe", "3c2f"),
                walk=(1, 2),
            )
            rows = [
                synthetic.row(**fields, accepted=None, instance=0, instance_name=text, findings=(finding,))
            ]
            rows.append(
                synthetic.row(
                    **fields | {"status": "ok", "phase": ""}, valid=False, accepted=True, instance=1
                )
            )
            groups.append([(row, synthetic.ns(1_000, 10, 3_000, 10)) for row in rows])
    return synthetic.write_run(folder, groups, synthetic.info(arms), cases)


def refusing_run(folder: Path) -> Path:
    """Returns two backends, a vocabulary that is here, and a token refused."""
    vocabulary = load_vocabulary("probe")
    content = '{"a": "été"}'.encode()
    tokens = vocabulary.encode(content)
    schema = '{"type": "object", "properties": {"a": {"type": "string"}}}'
    cases: list[tuple[str, Case]] = []
    groups: list[list[synthetic.Walk]] = []
    for number in range(6):
        case = synthetic.case(
            number,
            [("good", content, True), ("bad", b'{"a": 1}', False)],
            f"case {number}",
            schema[:-1] + f', "title": "{number}"}}',
            ["properties"],
        )
        cases.append(("first", case))
        for arm in synthetic.ARMS[:2]:
            fields: dict[str, Any] = {
                "backend": arm.backend,
                "backend_version": arm.version,
                "options": arm.options,
            }
            fields |= {
                "vocabulary": "probe",
                "case": case.name,
                "case_id": case.id,
                "tags": case.tags,
                "tokens": len(tokens),
            }
            refused = number < 4 and arm.backend == "alpha"
            good = synthetic.row(
                **fields,
                accepted=not refused,
                stopped_at=3 if refused else None,
                allowed=17 if refused else None,
            )
            groups.append(
                [
                    (good, synthetic.ns(2_000 * (number + 1), 5)),
                    (synthetic.row(**fields, instance=1, valid=False, accepted=False, stopped_at=2), b""),
                ]
            )
    info = synthetic.info(
        synthetic.ARMS[:2], vocabularies={"probe": {"size": vocabulary.size, "sha256": vocabulary.sha256}}
    )
    return synthetic.write_run(folder, groups, info, cases)


class Scripts(HTMLParser):
    """The script elements: attributes and content; and every address that the page names."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[dict[str, str | None], str]] = []
        self.addresses: list[str] = []
        self.inside = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.inside = tag == "script"
        if self.inside:
            self.elements.append((dict(attrs), ""))
        self.addresses += [
            value or "" for name, value in attrs if name in ("src", "href", "action", "data", "xlink:href")
        ]

    def handle_endtag(self, tag: str) -> None:
        self.inside = False

    def handle_data(self, text: str) -> None:
        if self.inside:
            self.elements[-1] = self.elements[-1][0], self.elements[-1][1] + text


def unpack(text: str) -> Any:
    """Returns what `harness.report.cases.data.pack` made a text of."""
    return json.loads(gzip.decompress(base64.b64decode(text)))


def on_page(html: str) -> tuple[dict[str, Any], list[Any]]:
    """Returns index and details, as the page's own script reads them."""
    texts = {
        attributes["id"]: text
        for attributes, text in Scripts(html).elements
        if attributes.get("type") == "text/plain"
    }
    index = unpack(texts["data-index"])
    return index, [
        record for number in range(len(index["shards"])) for record in unpack(texts[f"data-cases-{number}"])
    ]
