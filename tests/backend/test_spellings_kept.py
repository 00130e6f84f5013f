"""`check --layout`: which spellings of JSON a backend allows, beside the layout that it declares."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from harness.backend.contract.spellings import SPELLINGS, kept
from harness.backend.layout import COMPACT, EVERY_SPELLING, LAYOUTS, Layout
from harness.backend.vocabulary import byte_vocabulary
from harness.cli.main import main
from harness.oracle.language import documents_of
from harness.oracle.reference import Reference

ASCII = ((0x20, 0x21), (0x23, 0x5B), (0x5D, 0x7E))
LAYOUTS_TRIED: dict[str, Layout] = {
    **{str(name): layout for name, layout in LAYOUTS.items()},
    "blanks": replace(COMPACT, separators=None, whitespace=b" ", longest_run=1, order="required_first"),
    "closed": replace(COMPACT, separators=None, unlisted="never", order="any"),
    "strict": replace(COMPACT, unlisted="never", further_items=False),
    "asked": replace(COMPACT, unlisted="asked", further_items=False),
    "free": replace(
        EVERY_SPELLING, order="listed", exponents="signed", raw=((0x20, 0x21), (0x23, 0x5B), (0x5D, 0x7E))
    ),
}


@pytest.mark.parametrize("layout", LAYOUTS_TRIED.values(), ids=LAYOUTS_TRIED)
def test_what_is_said_of_a_spelling_is_what_the_automaton_of_the_layout_says(layout: Layout) -> None:
    for spelling in SPELLINGS:
        automaton = documents_of(json.dumps(spelling.schema), layout=layout)
        assert automaton.accepts(spelling.text_in(layout).encode()) == spelling.is_in(layout), spelling.name


def test_every_spelling_is_a_document_and_tells_some_layouts_apart() -> None:
    for spelling in SPELLINGS:
        assert documents_of(json.dumps(spelling.schema)).accepts(spelling.text.encode()), spelling.name
    assert len({spelling.name for spelling in SPELLINGS}) == len(SPELLINGS)


def test_separators_are_what_stands_behind_the_comma_and_the_colon() -> None:
    """With `(b",", b":")` no document is in the layout, and a check would find nothing in any mask."""
    with pytest.raises(ValueError, match="white space behind the comma"):
        Layout(separators=(b",", b":"))


def test_a_layout_that_is_not_kept_is_told() -> None:
    adapter = Reference(byte_vocabulary(), layout="compact")
    assert all(found.allowed == found.declared for found in (kept(adapter, each) for each in SPELLINGS))
    compiled = Reference(byte_vocabulary(), layout="spaced")

    class Wrong(Reference):
        def compile(self, grammar):  # type: ignore[no-untyped-def]
            return compiled.compile(grammar)

    wrong = [kept(Wrong(byte_vocabulary(), layout="compact"), each) for each in SPELLINGS]
    differing = {
        found.name: (found.declared, found.allowed) for found in wrong if found.declared != found.allowed
    }
    assert differing["no white space"] == (True, False)
    assert differing["a blank behind , and :"] == (False, True)


def test_the_command_says_where_a_backend_departs(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("xgrammar")
    assert main(["check", "xgrammar", "--layout"]) == 1
    printed = capsys.readouterr().out
    assert "departs in 3 from the layout that it declares" in printed
    assert "refused: a blank in a constant\n" in printed
    assert main(["check", "reference:layout=compact", "--layout", "--json"]) == 0
    spellings = json.loads(capsys.readouterr().out)["spellings"]
    assert len(spellings) == len(SPELLINGS) and all(each["allowed"] == each["declared"] for each in spellings)
    assert main(["check", "unconstrained", "--layout"]) == 0
    assert "unconstrained declares no layout" in capsys.readouterr().out


def test_a_backend_that_dies_costs_the_spelling(
    capsys: pytest.CaptureFixture[str], importable_miniatures: None
) -> None:
    assert main(["check", "miniatures.dying:DiesOverBlanks", "--layout"]) == 1
    printed = capsys.readouterr().out
    assert re.search(r"forty blanks .*SIGKILL", printed) and re.search(r"a tab .* yes +yes", printed)
