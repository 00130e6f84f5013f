"""How far a grammar moves a model: texts of a model whose probabilities are known are scored as one would do
by hand, after the timed runs and not in them.

The grammar is `[xy]ab`, in a vocabulary that has `ab` as one token.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import log
from pathlib import Path
from typing import Any

import bigram_model
import numpy as np
import pytest
import torch
from decode_tools import an_arm_in_this_process
from html_page import render

import harness
from harness.backend.grammar import Grammar, GrammarObject, MaskFormat
from harness.backend.vocabulary import Vocabulary, load_vocabulary
from harness.cli import main as cli
from harness.errors import OK, BadInput
from harness.measure.protocol import MeasuredArm
from harness.oracle.reference import Reference
from harness.serve.decode import arm as arm_module
from harness.serve.decode import engine as engine_module
from harness.serve.decode import goodness, scoring, show
from harness.serve.decode.as_json import to_json
from harness.serve.decode.engine import DecodeEngine
from harness.serve.decode.figures import DecodeCell, Decoded
from harness.serve.decode.goodness import Goodness, ScoredText
from harness.serve.decode.model.model import Model, load_model
from harness.serve.decode.record import FIGURES, LINES, DecodeRecorder, DecodeSetup, Decoding, read_decoding
from harness.serve.decode.setting import Setting
from harness.serve.requests.latency import OBJECTIVES
from harness.walk.loop.active import allowed_by
from harness.walk.loop.outcome import places_written
from harness.walk.loop.request import Request

GRAMMAR = Grammar("regex", "[xy]ab")
REFERENCE = "harness.oracle.reference:Reference"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bigram_model.write(tmp_path_factory.mktemp("model") / "bigram")


@pytest.fixture(scope="module")
def vocabulary(folder: Path) -> Vocabulary:
    return load_vocabulary(f"hf:{folder}")


@pytest.fixture(scope="module")
def model(folder: Path, vocabulary: Vocabulary) -> Model:
    return load_model(str(folder), vocabulary.size, rows=2, positions=64)


def ids_of(vocabulary: Vocabulary, *texts: bytes) -> list[int]:
    return [vocabulary.tokens.index(text) for text in texts] + [vocabulary.eos_token]


def scores(
    model: Model, vocabulary: Vocabulary, ids: Sequence[int], mask_format: MaskFormat = "bitmask"
) -> list[Any]:
    """Returns the columns of each place: tax and surprise as probabilities, and whether the favourite is
    masked."""
    started = Reference(vocabulary).compile(GRAMMAR).start()
    table = scoring.score(model, vocabulary, vocabulary.encode(b"[xy]ab"), ids, started, mask_format)
    assert model.length(0) == 0, "the row is given back"
    probabilities = np.exp(-table[:, :2] / goodness.NAT).round(6).tolist()
    return [(*row, masked) for row, masked in zip(probabilities, table[:, 2].tolist(), strict=True)]


def check_known_answers(model: Model, vocabulary: Vocabulary) -> None:
    """Asserts what `bigram_model.CHANCES` say of three texts. Kept are: at first x and y, and not z, the
    favourite; behind x both `ab` and `a`; at the end only the end."""
    canonical = scores(model, vocabulary, ids_of(vocabulary, b"x", b"ab"))
    assert canonical == [(0.3, 0.2, 1), (0.8, 0.2, 0), (0.3, 0.3, 1)]
    in_letters = scores(model, vocabulary, ids_of(vocabulary, b"x", b"a", b"b"))
    assert in_letters == [(0.3, 0.2, 1), (0.8, 0.6, 0), (0.5, 0.5, 0), (0.4, 0.4, 0)]
    # The model says nothing of `a` behind y, so that `a` has its share of the rest there.
    other = scores(model, vocabulary, ids_of(vocabulary, b"y", b"ab"))
    rest = round(0.9 + 0.1 / (vocabulary.size - 1), 6)
    assert other == [(0.3, 0.1, 1), (rest, 0.9, 0), (0.3, 0.3, 1)]


CUDA = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")]


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=CUDA)])
def test_known_probabilities_give_the_known_scores(device: str, folder: Path, vocabulary: Vocabulary) -> None:
    model = load_model(str(folder), vocabulary.size, rows=2, positions=64, device=device, dtype="float32")
    check_known_answers(model, vocabulary)


def test_both_formats_of_masks_give_the_same_scores(model: Model, vocabulary: Vocabulary) -> None:
    ids = ids_of(vocabulary, b"y", b"a", b"b")
    assert scores(model, vocabulary, ids, "bool") == scores(model, vocabulary, ids)


def test_a_text_in_many_parts_has_the_same_scores(folder: Path, vocabulary: Vocabulary) -> None:
    """The pass over a text is cut where the model takes no more at once, in the prompt and in the output."""
    for chunk in (1, 2, 5):
        narrow = load_model(str(folder), vocabulary.size, rows=1, positions=64, chunk=chunk)
        check_known_answers(narrow, vocabulary)


def tempered(logits: Any, allowed: Any, ids: Any, honest: Any = scoring._scores) -> Any:
    """Scores behind a temperature of 2."""
    return honest(logits / 2, allowed, ids)


def masked_before(logits: Any, allowed: Any, ids: Any, honest: Any = scoring._scores) -> Any:
    """Scores logits to which the mask was applied."""
    return honest(logits.masked_fill(~torch.from_numpy(allowed), float("-inf")), allowed, ids)


def favoured(logits: Any, allowed: Any, ids: Any, honest: Any = scoring._scores) -> Any:
    """Scores logits that have the bonus of a replay."""
    return honest(
        logits.scatter_add(1, torch.tensor(ids)[:, None], torch.full((len(ids), 1), 1e6)), allowed, ids
    )


def shifted(logits: Any, allowed: Any, ids: Any, honest: Any = scoring._scores) -> Any:
    """Scores each place by the logits of the one before."""
    return honest(logits.roll(1, 0), allowed, ids)


def late(
    grammar_object: GrammarObject, token: int, vocabulary: Vocabulary, mask_format: Any, place: int
) -> Any:
    """Fills the mask when the token has been accepted."""
    assert grammar_object.accept_token(token)
    return allowed_by(grammar_object, vocabulary.size, mask_format) | (np.arange(vocabulary.size) == token)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("_scores", tempered),
        ("_scores", masked_before),
        ("_scores", favoured),
        ("_scores", shifted),
        ("_mask_before", late),
    ],
)
def test_a_score_of_anything_else_is_found(
    name: str,
    wrong: Callable[..., Any],
    model: Model,
    vocabulary: Vocabulary,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(scoring, name, wrong)
    with pytest.raises(AssertionError):
        check_known_answers(model, vocabulary)


def test_a_text_that_cannot_be_scored_is_left_out_by_name(model: Model, vocabulary: Vocabulary) -> None:
    request = Request("one", tuple(vocabulary.encode(b"[xy]ab")), 8, GRAMMAR)
    wrong = [{"number": 0, "ids": ids_of(vocabulary, b"z"), "moves": []}]
    right = [{"number": 0, "ids": ids_of(vocabulary, b"x", b"ab"), "moves": [(1, 1)]}]
    answer, blob = scoring.scored(model, Reference(vocabulary), [request], [*wrong, *right], None)
    refused = "a fresh object refuses id 0 of the output, which was written under it"
    assert answer["left_out"] == {refused: 1}
    assert answer["texts"] == [{"name": "one", "places": 3, "ids": 2, "other": 0}]
    assert np.frombuffer(blob, "<i8").reshape(3, -1)[:, 3].tolist() == [0, 1, 0]


def test_the_thinking_part_has_no_place(model: Model, vocabulary: Vocabulary) -> None:
    """The mask keeps only x and y behind `y`, the end of the thinking; both are among the rest there."""
    end = vocabulary.tokens.index(b"y")
    request = Request("one", (97,), 8, GRAMMAR, reasoning=True)
    ids = [vocabulary.tokens.index(b"z"), end, *ids_of(vocabulary, b"x", b"ab")]
    output = {"number": 0, "ids": ids, "moves": [(3, 1)]}
    answer, blob = scoring.scored(model, Reference(vocabulary), [request], [output], (end,))
    assert answer["left_out"] == {} and answer["texts"][0]["places"] == 3
    table = np.frombuffer(blob, "<i8").reshape(3, -1)
    rest = 2 * 0.1 / (vocabulary.size - 1)
    assert np.exp(-table[:, 0] / goodness.NAT) == pytest.approx([rest, 0.8, 0.3])
    assert table[:, 2:].tolist() == [[1, 0], [0, 1], [1, 0]]


def test_what_was_written_is_what_no_later_move_took_back() -> None:
    assert places_written(()) == set()
    assert places_written([(1, 2), (5, 1)]) == {1, 2, 5}
    assert places_written([(0, 4), (2, 1)]) == {0, 1, 2}, "id 3 was sampled again, or is not there"


def text(*places: tuple[float, float, int, int], other: int | None = 0) -> ScoredText:
    """Returns a text with these probabilities kept and these of its ids, and the two flags."""
    rows = [
        (-round(log(kept) * goodness.NAT), -round(log(own) * goodness.NAT), masked, written)
        for kept, own, masked, written in places
    ]
    return ScoredText("a", len(rows), other, np.array(rows, np.int64))


def test_the_figures_are_those_that_the_papers_define() -> None:
    texts = [text((0.5, 0.25, 1, 0), (0.8, 0.2, 0, 1)), text((1.0, 0.5, 0, 0), (0.1, 0.1, 1, 0), other=1)]
    assert goodness.removed(texts) == pytest.approx([0.5, 0.2, 0.0, 0.9])
    assert goodness.taxes(texts) == pytest.approx([-log(0.5 * 0.8), -log(0.1)])
    assert goodness.tax_per_id(texts) == pytest.approx(-log(0.5 * 0.8 * 0.1) / 4)
    assert goodness.imposed(texts) == pytest.approx([log(0.8 / 0.2), 0])
    assert goodness.favourite_masked(texts) == 0.5 and goodness.canonical_ids(texts) == 0.75
    assert goodness.canonical_ids([text((1, 1, 0, 0), other=None)]) is None
    assert goodness.tax_per_id([]) is None and goodness.favourite_masked([]) is None


def test_a_text_without_a_place_has_no_tax(decoded: Decoding) -> None:
    """Its thinking never ended, so that no mask was asked for: it is no text with a tax of 0."""
    thought = ScoredText("b", 40, 0, np.zeros((0, len(goodness.PLACE_COLUMNS)), np.int64))
    cell = cells_of(decoded, "jump_forward")[0]
    for texts in ([text((0.5, 0.25, 1, 0), (0.8, 0.2, 0, 1))], []):
        alone, beside = (
            Decoded(decoded).values(replace(cell, goodness=Goodness("a", 0, tuple(scored), {})))
            for scored in (texts, [*texts, thought, thought])
        )
        for name in ("removed", "tax", "tax_per_id", "imposed", "favourite_masked"):
            assert beside[name] == alone[name] and (alone[name] is None) == (not texts), name
        assert beside["canonical_ids"] == 1, "its ids are there all the same"


SUITE = [
    {"suite": "bigram", "version": "1", "description": "one grammar, whose last token is ab"},
    {
        "description": "letters",
        "regex": GRAMMAR.text,
        "tests": [{"description": "one", "text": "xab", "valid": True}],
    },
]


class InProcess:
    """A service whose child is this process. What goes to and fro is JSON, as it is between processes."""

    def __init__(self, loader: str, arguments: dict[str, Any], *_: object, **__: object) -> None:
        self.handler: Any
        self.handler, self.description = arm_module.load_arm(**arguments)

    def start(self) -> None: ...

    def wait(self) -> None: ...

    def renew(self) -> None: ...

    def close(self) -> None:
        """Ends the threads that would end with a process."""
        for queue in self.handler.queues.values():
            queue.close()

    def ask(
        self, message: dict[str, Any], blob: bytes = b"", *, seconds: float
    ) -> tuple[dict[str, Any], bytes]:
        answer, more = self.handler(json.loads(json.dumps(message)), blob)
        assert "harness_error" not in answer, answer
        return json.loads(json.dumps(answer)), more


def suite(folder: Path) -> str:
    (folder / "bigram.jsonl").write_text("".join(json.dumps(line) + "\n" for line in SUITE))
    return str(folder / "bigram.jsonl")


ARM = MeasuredArm("a", REFERENCE, "a", "1", "", "arm", "python")


@pytest.fixture(scope="module")
def decoded(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Decoding]:
    """A decoding with the model from its folder, which chooses itself what it writes."""
    where = tmp_path_factory.mktemp("decoding")
    plain = Setting(suite(where), mode="greedy", texts=2, prompt_tokens=8, limit=8)
    settings = [
        replace(plain, strategy=strategy, batch=batch)
        for batch in (1, 2)
        for strategy in ("stepwise", "jump_forward")
    ]
    setup = DecodeSetup(
        "r", "2026-11-23T20:00:00+00:00", "0", ("decode",), "quick", f"hf:{folder}", "00", str(folder), "cpu",
        None, 1, 1, (ARM,), tuple(settings), {}, "h", (), OBJECTIVES,
    )  # fmt: skip
    with an_arm_in_this_process():
        with pytest.MonkeyPatch.context() as patch, DecodeRecorder(where, setup) as recorder:
            patch.setattr(engine_module, "Service", InProcess)
            DecodeEngine(setup, 1, 60.0, recorder, lambda *_: "valid", lambda _: None).run()
            recorder.finish("2026-11-23T20:01:00+00:00")
        yield read_decoding(where)


def cells_of(decoded: Decoding, strategy: str) -> list[DecodeCell]:
    return [cell for cell in Decoded(decoded).cells if cell.strategy == strategy]


def test_a_real_model_is_scored_under_every_strategy_and_batch(decoded: Decoding) -> None:
    """Stepwise the model spells `ab` in two tokens, as it likes best; jump-forward writes the tokenizer's
    own one, which has a quarter of what the mask keeps there."""
    assert_known(decoded)


def assert_known(decoded: Decoding) -> None:
    known = {
        "stepwise": (-log(0.3 * 0.8 * 0.5 * 0.4), (0.7 + 0.2 + 0.5 + 0.6) / 4, 1 / 4, 0.0, 0.0, 1 / 3),
        "jump_forward": (-log(0.3 * 0.8 * 0.3), (0.7 + 0.2 + 0.7) / 3, 2 / 3, log(4), 1.0, 1.0),
    }
    for strategy, figures in known.items():
        cells = cells_of(decoded, strategy)
        assert [cell.setting.batch for cell in cells] == [1, 2]
        for cell in cells:
            assert cell.goodness is not None and len(cell.goodness.texts) == 2 and not cell.goodness.left_out
            found = Decoded(decoded).values(cell)
            tax, removed, imposed = (found[name] for name in ("tax", "removed", "imposed"))
            assert isinstance(tax, dict) and isinstance(removed, dict) and isinstance(imposed, dict)
            shares = (found[name] for name in ("favourite_masked", "canonical", "canonical_ids"))
            masked, canonical, own_ids = shares
            measured = (tax["p50"], removed["mean"], masked, imposed["p50"], canonical, own_ids)
            assert measured == pytest.approx(figures, abs=1e-5), strategy


def test_the_scores_are_shown_and_those_of_random_weights_are_not(decoded: Decoding) -> None:
    shown = show.decoding_text(decoded)
    assert "not measured" not in shown and max(map(len, shown.splitlines())) <= 80
    (head,) = {line for line in shown.splitlines() if "tax/id" in line}
    assert "removed" in head and "masked" in head and "own ids" in head
    report = to_json(decoded)
    assert report["goodness"] == "measured"
    scored = [cell["scored"] for cell in report["cells"] if cell["strategy"] == "stepwise"]
    assert scored == [{"texts": 2, "places": 8, "left_out": {}, "why_not": ""}] * 2
    free = [cell["scored"] for cell in report["cells"] if cell["strategy"] == "none"]
    assert free and set(free) == {None}


def test_the_page_has_them_in_a_table(decoded: Decoding) -> None:
    (section,) = re.findall(r'<section id="goodness">.*?</section>', render([decoded.folder]), re.DOTALL)
    rows = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in re.findall("<tr>.*?</tr>", section)]
    heads = ["Load", "Arm", "Texts", "removed", "top id masked", "tax", "tax/id", "imposed", "canonical"]
    assert rows[0] == [*heads, "own ids"]
    load = f"{decoded.setup.settings[0].workload} ×1"
    stepwise = ["2", "50%", "25%", "3.04", "0.759", "0", "0%", "33.3%"]
    assert [f"{load} stepwise greedy", "a", *stepwise] in rows
    assert [
        f"{load} jump-forward greedy",
        "a",
        "2",
        "53.3%",
        "66.7%",
        "2.63",
        "0.877",
        "1.39",
        "100%",
        "100%",
    ] in rows


def test_python_has_them_by_text(decoded: Decoding) -> None:
    frame = harness.load(decoded.folder).scores
    assert len(frame) == 4 * 2 and set(frame["mode"]) == {"greedy"}
    jumped = frame[(frame["strategy"] == "jump_forward") & (frame["batch"] == 2)]
    known = {"places": 3, "ids": 2, "own_ids": 2, "top_id_masked": 2, "removed": (0.7 + 0.2 + 0.7) / 3}
    known |= {"tax_nats": -log(0.3 * 0.8 * 0.3), "imposed_nats": log(4)}
    for column, value in known.items():
        assert jumped[column].tolist() == pytest.approx([value] * 2, abs=1e-5), column


@pytest.mark.parametrize(
    ("honest", "wrong", "said"),
    [
        ('"places":3', '"places":4', "other figures than its texts have places"),
        ('"places":3', '"places":-3', "other figures than its texts have places"),
        ('"other":0', '"other":"none"', "not a line of a decoding"),
        ('"setting":1,"texts"', '"setting":99,"texts"', "none of this record's"),
    ],
)
def test_scores_that_were_changed_are_said_in_one_line(
    honest: str, wrong: str, said: str, decoded: Decoding, tmp_path: Path
) -> None:
    for name in (LINES, FIGURES):
        shutil.copy(decoded.folder / name, tmp_path / name)
    lines = (tmp_path / LINES).read_text().splitlines()
    changed = [line.replace(honest, wrong, 1) if '"kind":"goodness"' in line else line for line in lines]
    assert changed != lines
    (tmp_path / LINES).write_text("\n".join(changed) + "\n")
    with pytest.raises(BadInput, match=said) as raised:
        read_decoding(tmp_path)
    assert "\n" not in str(raised.value)


class Scripted:
    """A service that writes down what it is asked, and whether its child was new."""

    asked: list[str]
    kind = "real"

    def __init__(self, *_: object, **__: object) -> None:
        self.description = {"load_s": 1.0}

    def start(self) -> None: ...

    def wait(self) -> None: ...

    def close(self) -> None: ...

    def renew(self) -> None:
        self.asked.append("a new child")

    def ask(
        self, message: dict[str, Any], blob: bytes = b"", *, seconds: float
    ) -> tuple[dict[str, Any], bytes]:
        self.asked.append(message["op"])
        if message["op"] == "open":
            return {"build_s": 1.0, "threads": 1, "model": {"kind": self.kind}, "workloads": {}}, b""
        if message["op"] == "score":
            return {"texts": [], "left_out": {}}, b""
        return {
            "wall_ns": 1, "passes": 0, "peak_bytes": 1, "counts": {}, "completed": [],
            "texts": [], "as_replayed": [], "captured": 0,
        }, b""  # fmt: skip


@pytest.mark.parametrize("kind", ["real", "shape"])
def test_nothing_is_timed_in_a_process_that_has_scored(
    kind: str, decoded: Decoding, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A child is asked for scores once all its runs are made and written down, and then ends. A child with
    random weights is never asked."""
    asked: list[str] = []
    monkeypatch.setattr(Scripted, "asked", asked, raising=False)
    monkeypatch.setattr(Scripted, "kind", kind)
    monkeypatch.setattr(engine_module, "Service", Scripted)
    setup = replace(decoded.setup, forks=2, settings=(Setting("w"), Setting("w", "jump_forward")))
    with DecodeRecorder(tmp_path, setup) as recorder:
        DecodeEngine(setup, 1, 1.0, recorder, lambda *_: "valid", lambda _: None).run()
        recorder.finish("2026-11-23T20:00:00+00:00")
    scores = ["score"] * 2 if kind == "real" else []
    runs = setup.rounds * 3  # without a grammar, and two settings
    first = ["open", *["run"] * (3 + runs), *scores, "a new child"]
    assert asked == [*first, "open", *["run"] * (2 + runs), "a new child"]
    kinds = [json.loads(line)["kind"] for line in (tmp_path / "decode.jsonl").read_text().splitlines()]
    assert kinds.count("goodness") == len(scores)
    assert ("Not measured: random weights." in render([tmp_path])) == (kind == "shape")
    found = read_decoding(tmp_path)
    assert found.goodness == tuple(Goodness("a", place, (), {}) for place in range(len(scores)))
    why = "random weights" if kind == "shape" else ""
    assert Decoded(found).why_not_scored() == why
    assert ("not measured: random weights" in " ".join(show.decoding_text(found).split())) == (
        kind == "shape"
    )
    assert ("not measured: random weights" in to_json(found)["goodness"]) == (kind == "shape")


@pytest.mark.long
def test_the_command_scores_a_model_in_a_folder(folder: Path, tmp_path: Path) -> None:
    asked = ["decode", suite(tmp_path), "--backends", REFERENCE, "--model", str(folder), "--device", "cpu"]
    asked += ["--mode", "greedy", "--batch", "1,2", "--requests", "2", "--prompt-tokens", "8", "--limit", "8"]
    asked += ["--forks", "1", "--rounds", "1", "--strategies", "stepwise,jump_forward"]
    assert cli.main([*asked, "--out", str(tmp_path / "out")]) == OK
    assert_known(read_decoding(tmp_path / "out"))
