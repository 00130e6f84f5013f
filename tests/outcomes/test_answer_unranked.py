"""Backends that did not walk the same cases, were not checked alike, or whose run has no end, are not put
before one another; and an adapter that lets everything through is told so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from harness.backend.arm import Arm
from harness.checks.documents import TOKENS_LEAD
from harness.cli.main import main
from harness.outcomes.answer import Answer, read_answer, risks_by_backend
from harness.report.page.inputs import read_inputs

FINE: dict[str, Any] = {}
LETS_THROUGH = {"instance": 1, "valid": False, "accepted": True, "instance_name": "an invalid one"}
DECLINES = {"status": "unsupported", "phase": "compile", "accepted": None, "text": "no"}
REFUSES = {"accepted": False, "stopped_at": 1}
LOST = {"status": "harness_error", "accepted": None}


def run_of(
    synthetic: ModuleType,
    folder: Path,
    by_arm: Sequence[tuple[Arm, list[dict[str, Any]]]],
    *,
    complete: bool = True,
    first: int = 0,
    **header: Any,
) -> Path:
    """Writes a run in which each arm has one row for each case; the cases are numbered from `first` on."""
    groups = [
        [
            (
                synthetic.row(
                    **{
                        "backend": arm.backend, "backend_version": arm.version, "options": arm.options,
                        "case": f"case {number}", "case_id": f"{number:012x}", **fields,
                    }
                ),
                b"",
            )
        ]
        for arm, rows in by_arm
        for number, fields in enumerate(rows, first)
    ]  # fmt: skip
    info = synthetic.info([arm for arm, _ in by_arm], run=folder.name, **header)
    made: Path = synthetic.write_run(folder, groups, info, complete=complete)
    return made


def of_page(*runs: Path) -> Answer:
    answer = read_inputs(runs).answer()
    assert answer is not None
    return answer


@pytest.fixture
def alpha(synthetic: ModuleType) -> Arm:
    arm: Arm = synthetic.ARMS[0]
    return arm


@pytest.fixture
def gamma(synthetic: ModuleType) -> Arm:
    arm: Arm = synthetic.ARMS[2]
    return arm


def test_backends_that_walked_other_cases_are_not_put_before_one_another(
    synthetic: ModuleType, tmp_path: Path, alpha: Arm, gamma: Arm
) -> None:
    many = run_of(synthetic, tmp_path / "many", [(alpha, [FINE, FINE, DECLINES])])
    few = run_of(synthetic, tmp_path / "few", [(gamma, [FINE])], first=1)
    answer = of_page(many, few)
    assert answer.sentence == (
        "These backends were not tried on the same schemas, so none is put before another: "
        "alpha works on 2 of its 3 schemas and refuses 1. gamma works on its one schema."
    )
    assert answer.best is None and not answer.equals and not answer.is_recommended
    assert answer.sure == "nothing can be compared"
    assert answer.certainty[0] == "1 schema was tried with all of them."


def test_what_goes_wrong_is_told_of_backends_that_walked_other_cases(
    synthetic: ModuleType, tmp_path: Path, alpha: Arm, gamma: Arm
) -> None:
    many = run_of(synthetic, tmp_path / "many", [(alpha, [FINE, LETS_THROUGH])])
    few = run_of(synthetic, tmp_path / "few", [(gamma, [FINE, LETS_THROUGH])], first=7)
    answer = of_page(many, few)
    ((head, risks),) = risks_by_backend(answer)
    assert head == "What goes wrong with them, the worst first" and len(risks) == 2
    assert answer.certainty[0] == "No schema was tried with all of them."


def test_cases_that_one_backend_could_not_be_judged_on_do_not_make_them_others(
    synthetic: ModuleType, tmp_path: Path, alpha: Arm, gamma: Arm
) -> None:
    skipped = {"status": "skipped", "accepted": None}
    rows = [(alpha, [FINE, FINE, FINE]), (gamma, [FINE, LOST, skipped])]
    answer = read_answer(run_of(synthetic, tmp_path / "run", rows))
    assert answer.best is not None and answer.best.name == "alpha"
    assert answer.sentence.startswith(
        "alpha and gamma are equally right where all could be measured: each works on the one schema. "
        "Of 2 schemas a part could not be measured, through our own fault."
    )


def test_only_the_vocabulary_that_the_answer_is_about_decides(
    synthetic: ModuleType, tmp_path: Path, alpha: Arm, gamma: Arm
) -> None:
    both = run_of(synthetic, tmp_path / "both", [(alpha, [FINE, FINE]), (gamma, [FINE, DECLINES])])
    small = {"small": {"size": 10, "sha256": "ef" * 32}}
    on_a_small_one = [(alpha, [{"vocabulary": "small"}])]
    other = run_of(synthetic, tmp_path / "other", on_a_small_one, first=5, vocabularies=small)
    assert of_page(both, other).sentence.startswith("Use alpha · tiny: it works on 2 of the 2")


@pytest.mark.parametrize(
    ("one", "other", "how"),
    [
        ({"effort": 0}, {"effort": 2}, "effort 0 and 2"),
        ({"effort": -1}, {"effort": 2}, "effort 2 and all"),
        ({"effort": 2, "checks": ("the_mask_is_exact",)}, {"effort": 2}, "not each with all of them"),
        ({"effort": 2}, {"effort": 2, "decode": True}, "not each with all of them"),
    ],
)
def test_backends_that_were_not_checked_alike_are_not_put_before_one_another(
    synthetic: ModuleType,
    tmp_path: Path,
    alpha: Arm,
    gamma: Arm,
    one: dict[str, Any],
    other: dict[str, Any],
    how: str,
) -> None:
    first = run_of(synthetic, tmp_path / "first", [(alpha, [FINE, FINE])], **one)
    second = run_of(synthetic, tmp_path / "second", [(gamma, [FINE, LETS_THROUGH])], **other)
    answer = of_page(first, second)
    assert answer.sentence.startswith(
        f"These backends were not tried with the same checks ({how}), so none is put before another: alpha "
    )
    assert answer.best is None and answer.sure == "nothing can be compared"
    assert answer.certainty[0] == "2 schemas were tried with all of them."


SUITES = {"first": {"version": "1", "sha256": "cd" * 32, "cases": 2, "instances": 4}}


@pytest.mark.parametrize(
    ("other", "what"),
    [
        ({"suites": {"first": SUITES["first"] | {"sha256": "ef" * 32}}}, "the suite “first” is"),
        ({"vocabularies": {"tiny": {"size": 300, "sha256": "ef" * 32}}}, "the vocabulary “tiny” is"),
        (
            {
                "suites": {"first": SUITES["first"] | {"sha256": "ef" * 32}},
                "vocabularies": {"tiny": {"size": 300, "sha256": "ef" * 32}},
            },
            "the suite “first” and the vocabulary “tiny” are",
        ),
    ],
)
def test_backends_that_were_tried_on_other_instances_are_not_put_before_one_another(
    synthetic: ModuleType, tmp_path: Path, alpha: Arm, gamma: Arm, other: dict[str, Any], what: str
) -> None:
    """The id of a case is that of its grammar, and its instances may be others."""
    first = run_of(synthetic, tmp_path / "first", [(alpha, [FINE, FINE])], suites=SUITES)
    second = run_of(synthetic, tmp_path / "second", [(gamma, [FINE, REFUSES])], **{"suites": SUITES} | other)
    answer = of_page(first, second)
    assert answer.best is None and answer.sure == "nothing can be compared"
    assert answer.sentence.startswith(
        f"These backends were tried on the same schemas, but {what} not the same in their runs, so none is "
        "put before another: alpha works on 2"
    )


def test_suites_that_a_backend_was_not_tried_on_may_be_others(
    synthetic: ModuleType, tmp_path: Path, alpha: Arm, gamma: Arm
) -> None:
    """Two runs of one suite rank backends, and versions of one, whatever else the runs walked."""
    newer = replace(alpha, version="1.3.0")
    for other in (gamma, newer):
        folder = tmp_path / other.backend
        further = SUITES | {"second": {"version": "1", "sha256": "00", "cases": 0, "instances": 0}}
        one = run_of(synthetic, folder / "one", [(alpha, [FINE, FINE])], suites=SUITES)
        two = run_of(synthetic, folder / "two", [(other, [FINE, DECLINES])], suites=further)
        answer = of_page(one, two)
        assert answer.best is not None and answer.sentence.startswith("Use alpha")


def test_other_limits_are_told_and_make_it_less_sure(
    synthetic: ModuleType, tmp_path: Path, alpha: Arm, gamma: Arm
) -> None:
    compared: dict[str, Any] = {"counted": {TOKENS_LEAD: {"places": 1, "sound": 1}}}

    def beside(name: str, **header: Any) -> Answer:
        one = run_of(synthetic, tmp_path / name / "one", [(alpha, [compared] * 3)], effort=2)
        rows = [(gamma, [compared, DECLINES, DECLINES])]
        return of_page(one, run_of(synthetic, tmp_path / name / "two", rows, **{"effort": 2} | header))

    assert beside("alike").sure == "high"
    slower = beside("slower", timeout_s=60.0, seed=1)
    assert slower.best is not None and slower.sure == "fair"
    assert (
        "They were not all tried under the same limits: alpha, 10 s, 4.29497 GB, seed 0; "
        "gamma, 60 s, 4.29497 GB, seed 1."
    ) in slower.certainty
    assert slower.doubts == (
        "The answer is not surer, because the backends were not tried under the same limits.",
    )


def test_the_certainty_names_the_kinds_of_checks_that_were_left_out(
    synthetic: ModuleType, tmp_path: Path, alpha: Arm
) -> None:
    others = "drafts, documents, jump-forward, life cycle, reasoning, special tokens, spellings, tokenization"
    compared = (
        "The answer is not surer, because whole masks were compared with an exact reference in none of the "
        "schemas that alpha takes."
    )
    some = run_of(
        synthetic, tmp_path / "some", [(alpha, [FINE])], effort=1, checks=("a_copy_is_independent",)
    )
    answer = read_answer(some)
    assert answer.doubts == (compared, f"No checks were made of masks, {others} and UTF-8.")
    assert answer.sure == "fair"
    decoded = read_answer(run_of(synthetic, tmp_path / "decoded", [(alpha, [FINE])], decode=True))
    everything = f"masks, {others.replace('documents', 'documents, going back')}"
    assert decoded.doubts == (compared, f"No checks were made of {everything} and UTF-8.")
    assert decoded.sure == "fair"


def test_the_certainty_says_that_no_checks_were_made(
    synthetic: ModuleType, tmp_path: Path, alpha: Arm
) -> None:
    said = "No checks were made; only outputs were judged."
    without = run_of(synthetic, tmp_path / "without", [(alpha, [FINE])], effort=0)
    checked = run_of(synthetic, tmp_path / "checked", [(alpha, [FINE])], effort=1)
    decoded = run_of(synthetic, tmp_path / "decoded", [(alpha, [FINE])], effort=0, decode=True)
    assert said in read_answer(without).certainty
    assert said not in read_answer(checked).certainty and said not in read_answer(decoded).certainty


def test_nothing_is_recommended_by_the_page_of_a_run_without_end(
    synthetic: ModuleType, tmp_path: Path, alpha: Arm, gamma: Arm
) -> None:
    rows = [(alpha, [FINE, FINE]), (gamma, [FINE, DECLINES])]
    run = run_of(synthetic, tmp_path / "run", rows, complete=False)
    for answer in (of_page(run), read_answer(run)):
        assert answer.sentence == (
            "A run here is not whole, so nothing is recommended yet: "
            "alpha works on 2 of its 2 schemas. gamma works on 1 of its 2 schemas and refuses 1."
        )
        assert answer.best is None and answer.sure == "nothing is concluded"
    assert main(["report", str(run), "--out", str(tmp_path / "page")]) == 3
    page = (tmp_path / "page" / "report.html").read_text("utf-8")
    assert 'class="card chosen"' not in page and "Backends are ranked by how many cases go wrong" not in page


def test_an_adapter_that_lets_everything_through_is_told_so(
    synthetic: ModuleType, tmp_path: Path, alpha: Arm, gamma: Arm
) -> None:
    own = replace(alpha, backend="mine", distribution="")
    said = "mine enforced nothing: every output was accepted, invalid ones too."
    alone = read_answer(run_of(synthetic, tmp_path / "alone", [(own, [FINE, LETS_THROUGH])]))
    assert alone.sentence == (
        f"mine cannot be recommended: it works on 1 of the 2 schemas and is silently wrong in 1. {said}"
    )
    assert not alone.is_recommended and [risk.backends for risk in alone.risks] == [("mine",)]
    rows = [(own, [FINE, LETS_THROUGH]), (gamma, [FINE, LETS_THROUGH])]
    beside = of_page(run_of(synthetic, tmp_path / "beside", rows))
    assert [backend.name for backend in beside.backends] == ["gamma", "mine"]
    assert beside.sentence.startswith("Use gamma: it works on 1") and beside.sentence.endswith(said)


def test_a_backend_that_crashed_accepted_what_was_walked_to_its_end(
    synthetic: ModuleType, tmp_path: Path, alpha: Arm, gamma: Arm
) -> None:
    own, dies = replace(alpha, backend="mine", distribution=""), {"status": "crash", "accepted": None}
    rows = [(own, [FINE, LETS_THROUGH, dies]), (gamma, [FINE, FINE, FINE])]
    answer = read_answer(run_of(synthetic, tmp_path / "run", rows))
    assert answer.sentence.endswith(
        "mine enforced nothing: every output that was walked to its end was accepted, invalid ones too."
    )


@pytest.mark.parametrize("rows", [[FINE, FINE], [FINE, DECLINES], [FINE, REFUSES]], ids=str)
def test_a_control_is_one_whatever_was_walked(
    synthetic: ModuleType, tmp_path: Path, alpha: Arm, gamma: Arm, rows: list[dict[str, Any]]
) -> None:
    control = replace(alpha, backend="unconstrained", distribution="")
    beside = run_of(synthetic, tmp_path / "beside", [(control, rows), (gamma, [FINE, DECLINES])])
    for answer in (read_answer(beside), of_page(beside)):
        assert answer.sentence == "gamma works on 1 of the 2 schemas and refuses 1."
        assert "unconstrained is a control, which enforces nothing." in answer.certainty
    alone = run_of(synthetic, tmp_path / "alone", [(control, [FINE, FINE])])
    other = run_of(synthetic, tmp_path / "other", [(gamma, [FINE, DECLINES])])
    answer = read_answer(alone)
    assert not answer.is_recommended and answer.sentence == (
        "unconstrained cannot be recommended: it works on 2 of the 2 schemas. "
        "unconstrained is a control, which enforces nothing."
    )
    assert of_page(alone, other).sentence.startswith("Use gamma: it works on 1 of the 2 schemas")


def test_the_same_grammars_in_suites_of_other_names_were_tried_with_all(
    synthetic: ModuleType, tmp_path: Path, alpha: Arm, gamma: Arm
) -> None:
    one = run_of(synthetic, tmp_path / "one", [(alpha, [FINE, FINE])])
    other = run_of(synthetic, tmp_path / "other", [(gamma, [{"suite": "second"}, {"suite": "second"}])])
    answer = of_page(one, other)
    assert answer.best is None and answer.sentence.startswith(
        "These backends were tried on the same schemas in suites of other names, which may judge other "
        "outputs, so none is put before another: alpha works on 2"
    )
    assert answer.certainty[0] == "2 schemas were tried with all of them."


def test_a_run_of_the_control_alone_is_answered(synthetic: ModuleType, tmp_path: Path, alpha: Arm) -> None:
    control = replace(alpha, backend="unconstrained", distribution="")
    run = run_of(synthetic, tmp_path / "run", [(control, [FINE, LETS_THROUGH])])
    for answer in (read_answer(run), of_page(run)):
        assert answer.sentence.endswith(
            "unconstrained enforced nothing: every output was accepted, invalid ones too."
        )
        assert answer.risks and not answer.backends[0].is_control


def test_what_we_lost_on_one_backend_counts_against_none(
    synthetic: ModuleType, tmp_path: Path, alpha: Arm, gamma: Arm
) -> None:
    """A case that could not be measured says nothing of which backend is better, nor how sure that is."""
    run = run_of(synthetic, tmp_path / "equal", [(alpha, [LOST, LOST, FINE, FINE]), (gamma, [FINE] * 4)])
    equal = read_answer(run)
    assert len(equal.equals) == 1
    assert equal.sentence.startswith(
        "alpha and gamma are equally right where all could be measured: each works on 2 of the 2 schemas. "
        "Of 2 schemas a part could not be measured, through our own fault."
    )
    assert equal.sure == "low"
    assert "alpha and gamma differ in 0 schemas of those that could be measured with both." in equal.certainty
    wrong = [FINE, FINE, LETS_THROUGH, FINE]
    better = read_answer(
        run_of(synthetic, tmp_path / "better", [(alpha, [LOST, LOST, FINE, FINE]), (gamma, wrong)])
    )
    assert better.sentence.startswith(
        "Use alpha: it works on 2 of the 4 schemas; 2 could not be measured, through our own fault. "
        "gamma works on 3 and is silently wrong in 1"
    )
    lost = read_answer(
        run_of(synthetic, tmp_path / "other", [(alpha, [FINE] * 4), (gamma, [*wrong[:3], LOST])])
    )
    assert lost.sentence.startswith("Use alpha: it works on 4 of the 4 schemas. gamma works on 2")
    assert "in 1; 1 could not be measured, through our own fault." in lost.sentence


def test_without_a_case_measured_on_all_none_is_put_before_another(
    synthetic: ModuleType, tmp_path: Path, alpha: Arm, gamma: Arm
) -> None:
    answer = read_answer(run_of(synthetic, tmp_path / "run", [(alpha, [LOST, FINE]), (gamma, [FINE, LOST])]))
    assert answer.best is None
    assert answer.sentence.startswith(
        "No schema was measured with all of them, by our own fault, so none is put before another"
    )
