"""Pages of findings hold what the published rows say, or say the commit that they are of."""

from __future__ import annotations

import gzip
import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType

import pytest
from places import ROOT

STAMP = re.compile(
    r"^What this page found, it found with commit `[0-9a-f]{7,40}` of \d{4}-\d\d-\d\d; ", re.MULTILINE
)


@pytest.fixture(scope="module")
def findings() -> ModuleType:
    """benchmarks/findings.py, which is no part of the package."""
    spec = importlib.util.spec_from_file_location("findings", ROOT / "benchmarks" / "findings.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["faults.md", "known_bugs.md", "json_schema_masks.md"])
def test_the_tables_say_what_the_published_rows_say(findings: ModuleType, name: str) -> None:
    text = (ROOT / "docs" / name).read_text("utf-8")
    assert findings.BLOCK.search(text)
    assert findings.page(text) == text, "run python benchmarks/findings.py"


def test_a_table_that_was_changed_is_seen(findings: ModuleType) -> None:
    text = (ROOT / "docs" / "faults.md").read_text("utf-8")
    block = findings.BLOCK.search(text)
    line = next(line for line in block[0].splitlines() if re.search(r"\| \d+ \|", line))
    changed = text.replace(line, re.sub(r"\| \d+ \|", "| 777 |", line, count=1))
    assert changed != text and findings.page(changed) == text


@pytest.mark.parametrize(
    "name", ["keywords", "versions", "engines", "kernels", "llama_cpp", "more_backends", "corpora"]
)
def test_what_is_not_made_from_published_rows_says_its_commit(name: str) -> None:
    assert STAMP.search((ROOT / "docs" / f"{name}.md").read_text("utf-8"))


def test_kinds_of_blame(findings: ModuleType) -> None:
    named = {
        ("under_constrained", "no_json"): "accepts what is no JSON",
        ("under_constrained", "required"): "accepts JSON that the schema forbids",
        ("over_constrained", "whitespace+escapes"): "refuses a valid value in one spelling (whitespace, "
        "order, escapes, number forms)",
        ("over_constrained", "raw_delete_character"): "refuses a valid document with a raw U+007F",
        ("over_constrained", "at_number"): "refuses a valid document otherwise",
    }
    assert {key: findings.kind_of(*key) for key in named} == named


def test_blame_is_counted_once_a_case(findings: ModuleType, tmp_path: Path) -> None:
    published = ROOT / "results" / "published" / "findings-cpu-xeon-2vcpu-20261122" / "adjudicated"
    witness = {"kind": "under_constrained", "cause": "required", "arm": "xgrammar", "case_id": "a"}
    lines = [
        witness,
        witness | {"cause": "type"},
        witness | {"case_id": "b"},
        witness | {"kind": "validators_disagree"},
    ]
    (tmp_path / "rows.jsonl.gz").write_bytes((published / "rows.jsonl.gz").read_bytes())
    (tmp_path / "witnesses.jsonl.gz").write_bytes(
        gzip.compress("".join(json.dumps(each) + "\n" for each in lines).encode())
    )
    assert findings.adjudicated(tmp_path, "").splitlines()[2:] == [
        "| accepts JSON that the schema forbids | 2 | 0 | 0 | 0 |"
    ]
