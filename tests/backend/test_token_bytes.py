"""What a backend takes tokens for: the differences and their kinds, the masks that show them, the libraries'
own loaders on made-up tokenizers, and mutants that read one id wrongly."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from made_tokenizers import byte_level, metaspace
from miniatures import wrong_bytes_of_ids
from miniatures.wrong_bytes_of_ids import WRONG, HidesALostSpace, RightlyRead, SaysWhatIsNot

from harness.backend.grammar import Adapter, Grammar, UnsupportedGrammar
from harness.backend.known_tokens import bytes_of_stored_map
from harness.backend.registry import make, parse_spec
from harness.backend.token_bytes.compare import KINDS, kind_of, wrong_tokens
from harness.backend.token_bytes.look import Asked, Looked, Reading, reading_of, wrong_of
from harness.backend.token_bytes.place import place_of
from harness.backend.token_bytes.probe import held, sample, shown
from harness.backend.vocabulary import Vocabulary, load_vocabulary
from harness.cli import check_tokens
from harness.cli.main import main
from harness.rows.store import read_info, read_rows


@pytest.fixture(scope="module")
def letters(tmp_path_factory: pytest.TempPathFactory) -> Vocabulary:
    return load_vocabulary(f"hf:{byte_level(tmp_path_factory.mktemp('made') / 'letters')}")


@pytest.fixture(scope="module")
def pieces(tmp_path_factory: pytest.TempPathFactory) -> Vocabulary:
    return load_vocabulary(f"hf:{metaspace(tmp_path_factory.mktemp('made') / 'pieces')}")


# --------------------------------------------------------------------------------------- kinds of differences

TOKENS = (b" a", b"a", b"\n", "é".encode(), b"\xe6\x97", b"<tool>", b"", b"", b"", b"\xff")
SMALL = Vocabulary("small", TOKENS, (6,), {6: "</s>"}, frozenset({7}))


@pytest.mark.parametrize(
    ("token", "read", "kind"),
    [
        (6, b"</s>", "special_as_text"),
        (7, b"<pad>", "padding_as_text"),
        (8, b"x", "empty_as_text"),
        (1, b"", "text_as_special"),
        (0, b"a", "leading_space_lost"),
        (1, b" a", "leading_space_added"),
        (0, "▁a".encode(), "marker_kept"),
        (2, b"<0x0A>", "byte_as_text"),
        (0, "Ġa".encode(), "letters_kept"),
        (3, b"\xe9", "text_as_letters"),
        (4, "\ufffd".encode(), "replacement_character"),
        (1, b"<tool>", "text_of_another"),
        (1, b"b", "other"),
    ],
)
def test_a_difference_has_its_kind(token: int, read: bytes, kind: str) -> None:
    assert kind in KINDS
    assert kind_of(SMALL, token, read) == kind
    wrong = wrong_tokens(SMALL, [*TOKENS[:token], read, *TOKENS[token + 1 :]])
    assert [(each.token, each.kind, each.read) for each in wrong] == [(token, kind, read)]


def test_the_same_bytes_are_no_difference_and_those_of_no_text_may_be_no_text() -> None:
    assert wrong_tokens(SMALL, TOKENS) == []
    assert wrong_tokens(SMALL, TOKENS[:9]) == [], "0xFF stands in no UTF-8"
    assert [each.token for each in wrong_tokens(SMALL, [*TOKENS[:9], b"x"])] == [9]
    assert [each.token for each in wrong_tokens(SMALL, TOKENS[:5])] == [5], "what is missing is no text"


# ----------------------------------------------------------------------------------------------------- places


@pytest.mark.parametrize(
    "content",
    [
        *(b"a", b"0", b" a", "é".encode(), b"\xe6", b"\x97", b"\x97\xa5x", b"\x80\xf0\x9f"),
        *(b"\x8f\xbf\xbf", b"\x80\x80\x80a", b"\xbf\xbf\xbf"),
    ],
)
def test_a_place_is_one_of_several_ways_to_go_on(content: bytes) -> None:
    place = place_of(content)
    assert place is not None
    assert [text.decode() for text in place.texts] == json.loads(place.grammar.text)
    assert place.fits(content)
    assert not place.fits(b"")
    nexts = {text[len(place.before)] for text in place.texts if text.startswith(place.before)}
    assert len(nexts) > 1, "nothing is forced"


@pytest.mark.parametrize("content", [b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\x80\x80\x80\x80"])
def test_bytes_of_no_text_have_no_place(content: bytes) -> None:
    assert place_of(content) is None


# ---------------------------------------------------------------------------------------------------- mutants


def examined(adapter: Adapter) -> tuple[set[str], set[str], list[int]]:
    """Returns the kinds that the adapter shows, the kinds for which a wrong mask is found, and the ids that
    only the masks tell."""
    wrong = wrong_of(adapter) or []
    kinds = {each.kind for each in wrong}
    proven = {each.kind for each in wrong if shown(adapter, each)}
    known = {each.token for each in wrong}
    probed = sample(adapter.vocabulary, 120)
    return kinds, proven, [token for token in probed if token not in known and held(adapter, token)[1]]


def test_a_right_reading_is_silent(letters: Vocabulary, pieces: Vocabulary) -> None:
    for vocabulary in (letters, pieces):
        assert examined(RightlyRead(vocabulary)) == (set(), set(), [])
        assert examined(make(parse_spec("reference"), vocabulary)) == (set(), set(), [])


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.__name__)
def test_a_wrong_reading_is_named_and_a_mask_shows_it(
    wrong: type[Any], letters: Vocabulary, pieces: Vocabulary
) -> None:
    for vocabulary in (letters, pieces):
        kinds, proven, unknown = examined(wrong(vocabulary))
        assert kinds == proven == WRONG[wrong]
        assert unknown == []


@pytest.mark.parametrize("hiding", [HidesALostSpace, SaysWhatIsNot])
def test_what_a_backend_hides_is_seen_in_its_masks(hiding: type[Any], letters: Vocabulary) -> None:
    kinds, _, unknown = examined(hiding(letters))
    assert kinds == set()
    assert [letters.tokens[token] for token in unknown] == [b" a"]


def test_every_sort_of_token_is_probed(letters: Vocabulary) -> None:
    chosen = sample(letters, 20)
    assert len(chosen) <= 20
    assert {letters.special_tokens.get(token) for token in chosen} & {"<|start|>", "<|endoftext|>"}
    assert any(letters.tokens[token].startswith(b" ") for token in chosen)


# --------------------------------------------------------------------------------- the libraries' own loaders

OWN = {
    "xgrammar": ({"special_as_text": 1}, {"special_as_text": 2}),
    "llguidance": ({"text_as_special": 2}, {"special_as_text": 1}),
    "outlines-core": ({"letters_kept": 1}, {"special_as_text": 2}),
}
"""What each library's own loader reads wrongly of the two made-up tokenizers, by docs/tokenizers.md."""


@pytest.mark.parametrize("backend", OWN)
def test_the_loaders_read_what_the_page_says(backend: str, letters: Vocabulary, pieces: Vocabulary) -> None:
    pytest.importorskip(backend.replace("-", "_"))
    pytest.importorskip("transformers")
    for vocabulary, kinds in zip((letters, pieces), OWN[backend], strict=True):
        adapter = make(parse_spec(backend), vocabulary)
        reading = reading_of(adapter)
        assert (reading.loader, reading.refused, reading.kinds) == ("library", "", kinds)
        wrong = wrong_of(adapter)
        assert wrong is not None
        assert {each.kind for each in wrong if shown(adapter, each)} == set(kinds), "its masks are wrong so"


@pytest.mark.parametrize("backend", OWN)
def test_handed_bytes_are_read_rightly(backend: str, letters: Vocabulary, pieces: Vocabulary) -> None:
    pytest.importorskip(backend.replace("-", "_"))
    for vocabulary in (letters, pieces):
        adapter = make(parse_spec(f"{backend}:loader=bytes"), vocabulary)
        assert (adapter.loader, wrong_of(adapter)) == ("bytes", [])


def test_a_loader_that_refuses_declines_every_grammar(pieces: Vocabulary) -> None:
    pytest.importorskip("lmformatenforcer")
    transformers = pytest.importorskip("transformers")
    if int(transformers.__version__.partition(".")[0]) < 5:
        pytest.skip("its loader can be imported beside transformers 4")
    adapter = make(parse_spec("lm-format-enforcer"), pieces)
    assert "with the option loader=bytes" in adapter.refused_vocabulary
    with pytest.raises(UnsupportedGrammar, match="transformers is not installed"):
        adapter.compile(Grammar("regex", "a"))
    stated = Asked(adapter).answer({"op": "stated"}, b"")[0]
    assert stated["reading"]["refused"] == adapter.refused_vocabulary
    assert stated["wrong"] == []
    looked = Looked(1, Reading("", "no\n\x1b[31m", False, 0, {}, ()), [], {}, 0)
    assert check_tokens._answer("X", "bytes", looked) == r"X does not take bytes: no\n\x1b[31m"
    assert make(parse_spec("lm-format-enforcer:loader=bytes"), pieces).compile(Grammar("regex", "a"))


def test_a_stored_map_is_read_and_another_form_refused() -> None:
    stored = b"\x07\x03\x01a\x02\x01\x02\x03\xe6\x97\xa5\x02\xfb,\x01\xfcp\x11\x01\x00\x02\xff\x00\x01\x03"
    tokens = bytes_of_stored_map(stored, 301)
    assert {token: text for token, text in enumerate(tokens) if text} == {
        1: b"a", 2: b"a", 3: b"\xff\x00", 300: "日".encode(),
    }  # fmt: skip
    assert bytes_of_stored_map(b"\x07\x02\x01b\x01\x00\x01a\x01\x00", 1) == [b"b"], "the same each time"
    with pytest.raises(ValueError, match="bytes are left"):
        bytes_of_stored_map(stored + b"\0", 301)


# ----------------------------------------------------------------------------------------------- the commands


def test_check_says_which_tokens_are_read_wrongly(
    letters: Vocabulary, capsys: pytest.CaptureFixture[str], importable_miniatures: None
) -> None:
    spec = f"{wrong_bytes_of_ids.__name__}:{wrong_bytes_of_ids.LosesASpace.__name__}"
    assert main(["check", spec, "--tokens", "--vocabularies", letters.name]) == 1
    said = capsys.readouterr().out
    assert f"reads 1 of 300 ids of {letters.name} wrongly" in said
    assert 'is " a"  taken for "a"' in said
    assert 'the choice ["a", "0", "1"] allows id' in said
    assert main(["check", "reference", "--tokens", "--vocabularies", letters.name, "--json"]) == 0
    looked = json.loads(capsys.readouterr().out)
    assert (looked["wrong"], looked["misread"], looked["reading"]["stated"]) == ([], [], False)
    assert looked["probed"] > 30


@pytest.mark.parametrize(
    ("adapter", "code", "said"),
    [
        (wrong_bytes_of_ids.RefusesAll, 4, "nothing is known of how"),
        (wrong_bytes_of_ids.EndsItsProcess, 1, "a question was not answered: it ended the process"),
    ],
)
def test_where_no_mask_could_be_asked_nothing_is_right(
    adapter: type[Adapter],
    code: int,
    said: str,
    letters: Vocabulary,
    capsys: pytest.CaptureFixture[str],
    importable_miniatures: None,
) -> None:
    spec = f"{wrong_bytes_of_ids.__name__}:{adapter.__name__}"
    assert main(["check", spec, "--tokens", "--vocabularies", letters.name]) == code
    screen = capsys.readouterr().out
    assert said in screen and "rightly" not in screen


def test_a_run_keeps_the_beginning_of_what_is_said_at_length(
    letters: Vocabulary, tmp_path: Path, importable_miniatures: None
) -> None:
    cases = tmp_path / "one.jsonl"
    cases.write_text('{"description": "a", "choice": ["a"], "tests": [{"text": "a", "valid": true}]}\n')
    kinds = (wrong_bytes_of_ids.RefusesAtLength, wrong_bytes_of_ids.DocumentsAtLength)
    specs = ",".join(f"{wrong_bytes_of_ids.__name__}:{kind.__name__}" for kind in kinds)
    out = tmp_path / "run"
    asked = ["--vocabularies", letters.name, "--effort", "0", "--out", str(out)]
    assert main(["run", str(cases), "--backends", specs, *asked]) == 0
    refusing, documenting = read_info(out).readings
    assert refusing["refused"].startswith("not read: xxx") and len(refusing["refused"]) == 2000
    assert documenting["knows_one_end"].startswith("its page says: x") and documenting["refused"] == ""
    assert len(documenting["knows_one_end"]) == 2000
    assert [row.status for row in read_rows(out)] == ["unsupported", "ok"]


def test_a_run_tells_it_once_for_each_backend_and_vocabulary(
    letters: Vocabulary, tmp_path: Path, capsys: pytest.CaptureFixture[str], importable_miniatures: None
) -> None:
    cases = tmp_path / "one.jsonl"
    cases.write_text('{"description": "a", "choice": ["a", " a"], "tests": [{"text": "a", "valid": true}]}\n')
    spec = f"{wrong_bytes_of_ids.__name__}:{wrong_bytes_of_ids.LosesASpace.__name__}"
    out = tmp_path / "run"
    asked = ["--vocabularies", letters.name, "--effort", "0", "--out", str(out)]
    assert main(["run", str(cases), "--backends", f"{spec},reference", *asked]) == 0
    captured = capsys.readouterr()
    assert (captured.out + captured.err).count("it reads 1 id wrongly") == 1
    assert main(["table", str(out), "tokens", "--format", "json"]) == 0
    (line,) = json.loads(capsys.readouterr().out)
    assert (line["loader"], line["wrong"], line["size"]) == ("its own", 1, 300)
    assert 'is " a", taken for "a"' in line["example"]
    assert main(["report", str(out)]) == 0
    page = (out / "report" / "report.html").read_text()
    assert "What the backends take the tokens for" in page
