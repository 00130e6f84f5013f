"""Pages of findings hold what the published rows say, or say the commit that they are of."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import pytest
import synthetic
from places import ROOT
from scripts import script_of

from harness.checks.documents import TOKENS_LEAD
from harness.errors import OK
from harness.rows.row import CHECKS_MODE, Finding

STAMP = re.compile(
    r"^The findings on this page were made with commit `[0-9a-f]{7,40}` of \d{4}-\d\d-\d\d; ", re.MULTILINE
)


@pytest.fixture(scope="module")
def findings() -> ModuleType:
    """benchmarks/findings.py, which is no part of the package."""
    return script_of("findings")


LARGE = ("results", "json_schema_masks")
"""The pages whose tables are of 700,000 rows: half a minute, which `.ci/run` takes and others need not."""


PUBLISHED = sorted(path.parent for path in (ROOT / "results" / "published").glob("*/SHA256SUMS"))


@pytest.mark.long
@pytest.mark.parametrize("folder", PUBLISHED, ids=lambda folder: folder.name)
def test_the_published_reference_runs_verify(
    reference: ModuleType, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Their pages tell readers to do so. Where a word of a table has changed, --renew writes it anew."""
    assert reference.main(["--verify", str(folder)]) == OK, capsys.readouterr().out


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(path.stem, marks=[pytest.mark.long] if path.stem in LARGE else [])
        for path in sorted((ROOT / "docs").glob("*.md"))
        if "made by benchmarks/findings.py -->" in path.read_text("utf-8")
    ],
)
def test_the_tables_say_what_the_published_rows_say(findings: ModuleType, name: str) -> None:
    text = (ROOT / "docs" / f"{name}.md").read_text("utf-8")
    assert findings.BLOCK.search(text)
    assert findings.page(text) == text, "run python benchmarks/findings.py"


def test_a_table_that_was_changed_is_seen(findings: ModuleType) -> None:
    text = (ROOT / "docs" / "faults.md").read_text("utf-8")
    block = findings.BLOCK.search(text)
    line = next(line for line in block[0].splitlines() if re.search(r"\| \d+ \|", line))
    changed = text.replace(line, re.sub(r"\| \d+ \|", "| 777 |", line, count=1))
    assert changed != text and findings.page(changed) == text


def test_an_exception_is_no_token_that_is_wrongly_allowed(findings: ModuleType, tmp_path: Path) -> None:
    raised = Finding(TOKENS_LEAD, cause="backend_error", text="the backend raised KeyError")
    wrong = Finding(TOKENS_LEAD, cause="value", under=2)
    row = synthetic.row(mode=CHECKS_MODE, instance=None, findings=[raised, wrong])
    arms = findings.causes_of(synthetic.write_run(tmp_path, [[(row, b"")]]))
    assert [kind for of_arm in arms.values() for kind in of_arm] == [("wrongly allowed", "value")]


@pytest.mark.parametrize("name", ["versions", "engines", "kernels", "llama_cpp", "more_backends", "corpora"])
def test_what_is_not_made_from_published_rows_says_its_commit(name: str) -> None:
    assert STAMP.search((ROOT / "docs" / f"{name}.md").read_text("utf-8"))
