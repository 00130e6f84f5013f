"""What a run answers: the state of each case, the backend to use, the sentence, and the gravest risks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from html_page import render

from harness.backend.arm import Arm
from harness.backend.grammar import Grammar
from harness.cases.case import Case, Instance
from harness.checks.documents import TOKENS_LEAD
from harness.oracle.judge.second import violated_constraint
from harness.outcomes.answer import (
    Answer,
    CaseAnswer,
    evidence,
    read_answer,
    read_answered,
    risks_by_backend,
    words,
)
from harness.outcomes.answer.backends import Costs
from harness.outcomes.answer.cases import LAST_INSTANCE, Proof, broken_by
from harness.outcomes.answer.certainty import RIGHT_OUTPUT
from harness.outcomes.case_state import FAILED, CaseState
from harness.outcomes.outcome import CaseRows, counts_of
from harness.report.advice import _costs as costs
from harness.rows.row import CHECKS_MODE, OUT_OF_TIME, Finding
from harness.text import Console

DECLINES = {"status": "unsupported", "phase": "compile", "accepted": None, "text": "no `contains` here"}
FINE: dict[str, Any] = {}
COMPARED: dict[str, Any] = {"counted": {TOKENS_LEAD: {"places": 1, "sound": 1}}}
CHECKED = {"instance": None, "valid": None, "accepted": None, "mode": CHECKS_MODE}
IGNORES = {"instance": 1, "valid": False, "accepted": True, "instance_name": "xs.contains"}
REFUSES = {"instance": 0, "valid": True, "accepted": False, "stopped_at": 1}
SCHEMA = '{"properties": {"xs": {"type": "array", "contains": {"const": 1}}}}'


@pytest.mark.parametrize(
    ("fields", "state"),
    [
        ({}, CaseState.WORKS),
        ({"valid": None}, CaseState.NOT_JUDGED),
        (DECLINES, CaseState.REFUSED),
        ({"status": "harness_error", "accepted": None}, CaseState.NOT_MEASURED),
        ({"valid": False}, CaseState.SILENTLY_WRONG),
        ({"accepted": False}, CaseState.VALID_REFUSED),
        ({"status": "timeout", "phase": "compile", "accepted": None}, CaseState.TOO_SLOW),
        ({"status": "crash", "accepted": None}, CaseState.BREAKS),
        ({"status": "backend_error", "accepted": None}, CaseState.BREAKS),
        ({"findings": (Finding("a_check", 0, "", under=2, over=1),)}, CaseState.SILENTLY_WRONG),
        ({"findings": (Finding("a_check", 0, "", over=1),)}, CaseState.VALID_REFUSED),
        ({"findings": (Finding("a_check", 0, "", "canonical_only", over=1),)}, CaseState.OTHER_FAULT),
        ({"findings": (Finding("a_check", 0, "", cause="invalid"),)}, CaseState.SILENTLY_WRONG),
        ({"findings": (Finding("a_check", 0, "", cause="backend_error"),)}, CaseState.BREAKS),
        (
            {"findings": (Finding("reasoning_is_not_constrained", 0, "", "backend_error"),)},
            CaseState.OTHER_FAULT,
        ),
        ({"findings": (Finding("a_check", 0, ""),)}, CaseState.OTHER_FAULT),
        ({"findings": (Finding("a_check", 0, "", under=2, documented=True),)}, CaseState.WORKS),
    ],
)
def test_the_state_of_a_case(synthetic: ModuleType, fields: dict[str, Any], state: CaseState) -> None:
    case = CaseRows()
    case.add(synthetic.row(**fields))
    assert case.state == state


def test_the_gravest_state_holds_and_the_states_of_failed_cases_sum_up(synthetic: ModuleType) -> None:
    both, other, fine = CaseRows(), CaseRows(), CaseRows()
    for fields in ({"accepted": False}, IGNORES):
        both.add(synthetic.row(**fields))
    other.add(synthetic.row(findings=(Finding("a_check", 0, ""),)))
    fine.add(synthetic.row())
    counts = counts_of([both, other, fine])
    assert both.state == CaseState.SILENTLY_WRONG
    assert (counts.silently_wrong, counts.valid_refused, counts.other_fault) == (1, 0, 1)
    assert sum(getattr(counts, state) for state in FAILED) == counts.failed == 2


def _run(
    synthetic: ModuleType,
    folder: Path,
    by_arm: Sequence[list[dict[str, Any]]],
    arms: Sequence[Arm],
    effort: int = 0,
) -> Path:
    """Writes a run; `by_arm` has, for each arm, the fields of one row of each case."""
    documents = (Instance("one", b'{"xs": [1]}', True), Instance("xs.contains", b'{"xs": []}', False))
    written = [
        Case(f"{number:012x}", f"case {number}", Grammar("json_schema", SCHEMA), documents)
        for number in range(len(by_arm[0]))
    ]
    groups = []
    for arm, rows in zip(arms, by_arm, strict=True):
        who = {"backend": arm.backend, "backend_version": arm.version, "options": arm.options}
        for case, fields in zip(written, rows, strict=True):
            groups.append([(synthetic.row(case=case.name, case_id=case.id, **{**who, **fields}), b"")])
    made: Path = synthetic.write_run(
        folder, groups, synthetic.info(arms, effort=effort), [("first", case) for case in written]
    )
    return made


def _answer(synthetic: ModuleType, folder: Path, *by_arm: list[dict[str, Any]], effort: int = 0) -> Answer:
    return read_answer(_run(synthetic, folder, by_arm, synthetic.ARMS[: len(by_arm)], effort))


def test_a_refusal_is_better_than_a_fault_that_nobody_sees(synthetic: ModuleType, tmp_path: Path) -> None:
    answer = _answer(synthetic, tmp_path, [{}, {}, IGNORES], [{}, {}, DECLINES])
    assert answer.best is not None and answer.best.name == "beta:any_whitespace=false"
    assert answer.sentence == (
        "Use beta:any_whitespace=false: it works on 2 of the 3 schemas and refuses 1. "
        "alpha works on 2 and is silently wrong in 1 (`xs.contains`)."
    )
    assert not answer.risks, "nothing goes wrong with the best"
    (risk,) = answer.risks_elsewhere
    assert risk.sentence == 'alpha accepts `{"xs": []}`, which `xs.contains` forbids.'
    assert answer.backends[0].cases[2].proofs[0].said == "no `contains` here"


def test_an_exception_for_what_no_engine_hands_over_is_no_break(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    raised = "the backend raised ValueError: token id 9 out of range"
    found = Finding("an_id_outside_the_vocabulary_is_refused", 0, raised, "backend_error")
    answer = _answer(synthetic, tmp_path, [{"findings": (found,)}] * 2, [{}, IGNORES])
    assert answer.best is not None and answer.best.name == "alpha" and answer.best.right_outputs == 2
    assert [risk.sentence for risk in answer.risks] == [
        "With alpha “an id outside the vocabulary is refused” does not hold: only where it is handed an id "
        f"outside of the vocabulary, {raised}. It is the same in 1 more case."
    ]


def test_ids_that_are_never_text_are_named_where_only_these_are_lacking(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    lacks = "it forbids 12 tokens: it never takes these ids for text"
    found = Finding(TOKENS_LEAD, 0, lacks, "never_text", over=12)
    answer = _answer(synthetic, tmp_path, [{"findings": (found,)}], [IGNORES])
    assert "has another fault in 1 (ids that are never text)" in answer.sentence
    (risk,) = answer.risks
    assert risk.sentence == f"With alpha “{TOKENS_LEAD.replace('_', ' ')}” does not hold: {lacks}."


def test_a_sum_of_calls_that_is_too_long_is_not_told_as_a_call_without_an_answer(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    spent = "its calls had taken 12.3 s together after token 4 of 9; 30 s are allowed for a case"
    slow = {"status": "timeout", "phase": "walk", "accepted": None, "text": spent}
    (risk,) = _answer(synthetic, tmp_path, [{}, slow]).risks
    assert risk.sentence == f"alpha takes too long: {spent}."


@pytest.mark.parametrize(
    ("dialect", "documented", "said"),
    [
        ("regex", ("canonical_only", "regex_dialect_rust"), ["alpha has that of Rust's regex crate"]),
        ("lark", ("regex_dialect_ecma", "regex_dialect_javascript"), ["alpha has that of JavaScript"]),
        ("regex", ("unicode_version",), []),
        ("json_schema", ("regex_dialect_rust",), []),
    ],
)
def test_the_dialect_that_a_backend_states_as_its_own_is_told_where_a_case_is_a_regular_expression(
    synthetic: ModuleType, tmp_path: Path, dialect: str, documented: tuple[str, ...], said: list[str]
) -> None:
    arm = replace(synthetic.ARMS[0], documented=documented)
    answer = read_answer(_run(synthetic, tmp_path, [[{"dialect": dialect}]], [arm]))
    lines = [line for line in answer.certainty if "dialect" in line]
    assert [line.rpartition(": ")[2] for line in lines] == [f"{each}." for each in said]


def test_of_equally_many_wrong_cases_those_that_are_wrong_aloud_weigh_less(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    answer = _answer(synthetic, tmp_path, [{}, IGNORES], [{}, REFUSES])
    assert answer.best is not None and answer.best.name == "beta:any_whitespace=false"
    assert not answer.equals


def test_a_backend_that_refuses_nearly_everything_is_not_the_best(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    answer = _answer(synthetic, tmp_path, [{}, {}, {}, IGNORES], [{}, DECLINES, DECLINES, DECLINES])
    assert answer.best is not None and answer.best.name == "alpha"


def test_backends_share_a_risk_only_where_the_same_output_shows_it(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    lets_through = Finding(TOKENS_LEAD, 0, "allows 5 tokens", "control_character", under=5)
    controls = {**CHECKED, "findings": (lets_through,)}
    answer = _answer(synthetic, tmp_path / "apart", [IGNORES], [controls])
    assert [(risk.backends, risk.sentence) for risk in answer.risks] == [
        (("alpha",), 'alpha accepts `{"xs": []}`, which `xs.contains` forbids.'),
        (
            ("beta:any_whitespace=false",),
            "beta:any_whitespace=false allows raw control characters: allows 5 tokens.",
        ),
    ]
    (both,) = _answer(synthetic, tmp_path / "alike", [IGNORES], [IGNORES]).risks
    assert both.backends == ("alpha", "beta:any_whitespace=false")


def test_a_check_of_the_interface_that_fails_in_many_cases_is_one_risk(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    failing = {**CHECKED, "findings": (Finding("a_copy_is_independent", 0, "a copy moved"),)}
    other = {**CHECKED, "findings": (Finding("a_refused_token_does_not_move", 0, "it moved"),)}
    answer = _answer(synthetic, tmp_path, [failing, other, failing, failing])
    assert [risk.sentence for risk in answer.risks] == [
        "With alpha “a copy is independent” does not hold: a copy moved. It is the same in 2 more cases.",
        "With alpha “a refused token does not move” does not hold: it moved.",
    ]


def test_the_sentence_is_plain_where_a_backend_refuses_all_or_there_is_one_case(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    answer = _answer(synthetic, tmp_path / "all", [{}, REFUSES, DECLINES], [DECLINES] * 3)
    assert answer.sentence == (
        "Use alpha: it works on 1 of the 3 schemas, refuses valid output in 1 and refuses 1 altogether. "
        "beta:any_whitespace=false refuses them all."
    )
    (own,) = answer.risks
    assert own.sentence == 'alpha refuses `{"xs": [1]}`, which is valid.'
    assert not answer.risks_elsewhere, "a refusal is no fault"
    assert [head for head, _ in risks_by_backend(answer)] == ["What goes wrong with alpha, the worst first"]
    one = _answer(synthetic, tmp_path / "one", [{}], [IGNORES])
    assert one.sentence == (
        "Use alpha: it works on the one schema. "
        "beta:any_whitespace=false works on none and is silently wrong in 1 (`xs.contains`)."
    )


def test_what_stands_beside_a_state_says_what_shows_it() -> None:
    def beside(state: CaseState, **fields: Any) -> str:
        proof = Proof(state, **({"constraint": "", "said": ""} | fields))
        return evidence(CaseAnswer("first", "0", "a case", state, (proof,)))

    assert beside(CaseState.SILENTLY_WRONG, constraint="xs.contains") == "`xs.contains`"
    assert beside(CaseState.SILENTLY_WRONG, constraint="special tokens") == "special tokens", "no keyword"
    assert beside(CaseState.VALID_REFUSED, document="[1]", instance=0) == "`[1]` is valid"
    assert beside(CaseState.OTHER_FAULT, check="a_copy_is_independent", said="it moves") == (
        "“a copy is independent” does not hold: it moves"
    )
    assert beside(CaseState.REFUSED, said="no `contains`") == "no `contains`"
    assert beside(CaseState.REFUSED, said="UnsupportedGrammar: no `contains`") == "no `contains`"
    assert beside(CaseState.BREAKS, said="IndexError: out of range") == "IndexError: out of range"
    assert beside(CaseState.WORKS) == ""


def test_backends_that_fare_alike_are_said_to_be_equal(synthetic: ModuleType, tmp_path: Path) -> None:
    answer = _answer(synthetic, tmp_path, [{}, {}, DECLINES], [{}, {}, DECLINES])
    assert [one.name for one in answer.equals] == ["beta:any_whitespace=false"]
    assert answer.sentence == (
        "alpha and beta:any_whitespace=false are equally right: "
        "each works on 2 of the 3 schemas and refuses 1."
    )
    assert not answer.risks


def test_equal_are_only_those_with_the_same_states(synthetic: ModuleType, tmp_path: Path) -> None:
    bare = {"instance": None, "valid": None, "accepted": None}
    answer = _answer(synthetic, tmp_path, [{}, {}, DECLINES], [{}, {}, bare])
    assert not answer.equals
    assert answer.sentence == (
        "Use beta:any_whitespace=false: it works on 2 of the 3 schemas; 1 is not judged. "
        "alpha works on 2 and refuses 1."
    )


def test_among_equals_who_refuses_the_fewest_is_first(synthetic: ModuleType, tmp_path: Path) -> None:
    """What is taken on may work, though nothing could judge it."""
    unknown = {"valid": None}
    refuser, taker = [{}, *[DECLINES | unknown] * 3], [{}, *[unknown] * 3]
    for name, by_arm in (("behind", (refuser, taker)), ("before", (taker, refuser))):
        answer = _answer(synthetic, tmp_path / name, *by_arm)
        assert answer.best is not None and answer.best.counts.refused == 0 and not answer.equals
        best, other = answer.best.name, answer.backends[1].name
        assert answer.sentence == (
            f"Use {best}: it works on 1 of the 4 schemas; 3 are not judged. {other} works on 1 and refuses 3."
        )
        assert any(
            f"{best} is not ahead of {other} by more than one schema that could be judged" in one
            for one in answer.certainty
        )
        assert answer.sure == "low"
    faulty = _answer(synthetic, tmp_path / "faulty", [*refuser, {}], [*taker, IGNORES])
    assert faulty.best is not None and faulty.best.counts.refused == 3, "a fault weighs more"
    assert faulty.sentence.endswith("is silently wrong in 1 (`xs.contains`); 3 are not judged.")
    (said,) = (one for one in faulty.certainty if "by more than one schema" in one)
    assert "could be judged" not in said.partition("by more than one schema")[2]


def test_what_is_not_kept_is_told_of_equal_ones_where_it_is_the_same(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    one, other = (
        {"findings": (Finding("a_check", 1, "m", cause, under=2),)}
        for cause in ("control_character", "keyword_pattern")
    )
    same = _answer(synthetic, tmp_path / "same", [{}, one], [{}, one])
    differ = _answer(synthetic, tmp_path / "differ", [{}, one], [{}, other])
    assert same.equals and differ.equals
    assert same.sentence.endswith("and is silently wrong in 1 (raw control characters).")
    assert differ.sentence.endswith("and is silently wrong in 1.")


def test_a_fault_in_a_case_that_nothing_judged_is_no_right_output(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    fault = CHECKED | {"findings": (Finding("a_copy_is_independent", 1, "a copy moved"),)}
    answer = _answer(synthetic, tmp_path, [{}, fault, fault], [{}, CHECKED, CHECKED])
    assert answer.best is not None and answer.best.name == "beta:any_whitespace=false"
    alone = _answer(synthetic, tmp_path / "alone", [fault], [CHECKED])
    assert not alone.is_recommended
    assert alone.sentence.startswith("None of these backends can be recommended: alpha does not work on")
    judged = {"findings": fault["findings"]}
    assert _answer(synthetic, tmp_path / "judged", [judged]).is_recommended


def test_where_more_outputs_are_right_than_cases_work_the_faults_between_are_told(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    fault = {"findings": (Finding("a_copy_is_independent", 1, "a copy moved"),)}
    crash = {"status": "crash", "accepted": None}
    answer = _answer(synthetic, tmp_path, [{}] * 5, [{}, {}, fault, crash, IGNORES])
    assert answer.sentence.endswith(
        " beta:any_whitespace=false gives right output in 3, breaks on 1, is silently wrong in 1 "
        "(`xs.contains`) and has another fault in 1 of those with right output."
    )
    assert RIGHT_OUTPUT in answer.certainty
    alone = _answer(synthetic, tmp_path / "alone", [fault | {"accepted": True}], [IGNORES])
    assert "of those with right output" not in alone.sentence and "has another fault in 1" in alone.sentence
    fewer = _answer(synthetic, tmp_path / "fewer", [{}] * 3, [{}, {}, crash])
    assert RIGHT_OUTPUT not in fewer.certainty, "nobody speaks of right output"


def test_refused_cases_that_nothing_could_judge_are_said(synthetic: ModuleType, tmp_path: Path) -> None:
    unknown = DECLINES | {"valid": None}
    answer = _answer(synthetic, tmp_path / "two", [{}, DECLINES, unknown, unknown])
    assert answer.certainty[0].startswith("2 of 4 schemas were judged")
    assert "For 2 refused schemas there was nothing to judge a backend by." in answer.certainty
    assert "nothing to judge a backend by" not in " ".join(
        _answer(synthetic, tmp_path / "none", [{}, DECLINES]).certainty
    )


def test_backends_that_nothing_judged_do_not_fare_worse(synthetic: ModuleType, tmp_path: Path) -> None:
    answer = _answer(synthetic, tmp_path, [{}, {}], [{}, IGNORES], [{}, REFUSES], [CHECKED, CHECKED])
    assert answer.sentence.endswith("(`xs.contains`). One more was not judged.")


def test_where_none_works_those_that_fare_alike_are_named_together(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    answer = _answer(synthetic, tmp_path, [REFUSES], [REFUSES])
    assert answer.sentence == (
        "None of these backends can be recommended: alpha and beta:any_whitespace=false, each of which "
        "does not work on the one schema and refuses valid output in 1."
    )


def test_without_anything_judged_nothing_is_recommended(synthetic: ModuleType, tmp_path: Path) -> None:
    bare = {"instance": None, "valid": None, "accepted": None}
    answer = _answer(synthetic, tmp_path, [bare, bare], [bare, DECLINES | bare])
    assert answer.best is None and answer.sure == "nothing is known"
    assert answer.sentence == "Nothing can be said yet: no schema of this run could be judged."
    assert answer.certainty == (
        "There is no instance with a known verdict, and no mask that was compared with an exact reference.",
    )


def test_why_nothing_is_known_is_said_where_every_case_was_refused(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    """The page shows it too."""
    unknown = DECLINES | {"instance": None, "valid": None}
    runs = [
        _run(synthetic, tmp_path / name, [rows], synthetic.ARMS[:1])
        for name, rows in [
            ("all", [unknown, unknown]),
            ("some", [unknown, {"status": "harness_error", "accepted": None}]),
        ]
    ]
    all_refused, some = map(read_answer, runs)
    why = "refused, and there is no instance with a known verdict"
    assert all_refused.sure == "nothing is known" and len(all_refused.certainty) == 1
    assert all_refused.certainty[0].startswith(f"Every schema was {why}")
    assert some.certainty[1].startswith(f"The others were {why}")
    assert f"nothing is known. Every schema was {why}" in " ".join(render(runs[:1]).split())


def test_what_failed_through_our_own_fault_is_said(synthetic: ModuleType, tmp_path: Path) -> None:
    lost = {"status": "harness_error", "accepted": None}
    none = _answer(synthetic, tmp_path / "none", [lost, lost])
    assert none.certainty == ("Of 2 schemas a part could not be measured, through our own fault.",)
    some = _answer(synthetic, tmp_path / "some", [{}, lost])
    assert some.sentence == (
        "alpha works on 1 of the 2 schemas; 1 could not be measured, through our own fault."
    )


def test_the_certainty_says_how_many_cases_were_judged_and_by_what(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    answer = _answer(synthetic, tmp_path, [{}, IGNORES, {"valid": None}], [{}, IGNORES, {"valid": None}])
    assert answer.certainty[0] == "2 of 3 schemas were judged, by 1 valid and 1 invalid output."
    assert answer.certainty[2].startswith("1 schema could not be judged, though alpha compiles it: there is ")


def test_where_a_case_has_more_outputs_than_are_told_apart_there_are_at_least_so_many(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    most = {"instance": LAST_INSTANCE, "instance_name": "last"}
    answer = _answer(synthetic, tmp_path, [most, IGNORES], [most, IGNORES])
    assert answer.certainty[0] == "2 of 2 schemas were judged, by at least 1 valid and 1 invalid output."


def test_only_outputs_that_the_best_one_walked_judged_it(synthetic: ModuleType, tmp_path: Path) -> None:
    refused = _answer(synthetic, tmp_path / "refused", [DECLINES], [REFUSES])
    assert refused.certainty[0] == "1 of 1 schema was judged."
    answer = _answer(synthetic, tmp_path / "some", [{}, {}, DECLINES], [{}, IGNORES, IGNORES])
    assert answer.certainty[0] == (
        "3 of 3 schemas were judged; alpha was judged on those that it takes, by 2 valid and 0 invalid "
        "outputs."
    )


def test_masks_of_one_case_only_are_no_masks_of_the_backend_that_has_another(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    exact = {**CHECKED, "dialect": "regex", "checks": {"the_mask_is_exact": "passed"}}
    both = _answer(synthetic, tmp_path / "both", [{}, exact], [{}, exact])
    assert "by 1 valid and 0 invalid outputs and whole masks of 1 case compared" in both.certainty[0]
    other = _answer(synthetic, tmp_path / "other", [{}, {}], [{}, exact])
    assert other.certainty[0] == "2 of 2 cases were judged, by 2 valid and 0 invalid outputs."


def test_the_certainty_says_at_how_many_places_masks_were_compared(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    """Of two backends, the one that was followed further counts."""
    ways = [[{}, {**CHECKED, "counted": {TOKENS_LEAD: {"places": places, "sound": 0}}}] for places in (3, 5)]
    answer = _answer(synthetic, tmp_path, *ways)
    assert "At 5 places in 1 schema the whole mask was compared" in " ".join(answer.certainty)


def test_the_certainty_says_where_the_time_for_checks_was_up(synthetic: ModuleType, tmp_path: Path) -> None:
    cut_short = {**CHECKED, **COMPARED, "checks": {"a_check": OUT_OF_TIME}}
    answer = _answer(synthetic, tmp_path, [{}, cut_short], [{}, CHECKED])
    said = "The time for the checks was up before all were made in 1 schema of alpha."
    assert said in answer.certainty
    for cut, sure in ((1, "high"), (2, "fair")):
        rows = [*[COMPARED] * (10 - cut), *[cut_short] * cut]
        answer = _answer(synthetic, tmp_path / sure, rows, effort=2)
        assert answer.sure == sure, "a tenth of the cases is few"
        counted = f"{cut} schema{'s' if cut > 1 else ''}"
        assert answer.doubts[-1] == said.replace("1 schema", counted)
        assert ("the checks of alpha were cut short in 2 schemas" in answer.doubts[0]) == (cut == 2)
    bare = _answer(synthetic, tmp_path / "bare", [{}] * 10)
    assert bare.sure == "fair", "without checks it is never high"
    assert bare.doubts[1:] == ("No checks were made; only outputs were judged.",)
    arms = [replace(arm, backend="alpha", version="1.2.3") for arm in synthetic.ARMS[:2]]
    one_library = read_answer(_run(synthetic, tmp_path / "arms", [[{}, CHECKED], [{}, cut_short]], arms))
    assert said.replace("of alpha", "of alpha:any_whitespace=false") in one_library.certainty


def test_a_version_is_named_as_a_user_asks_for_it(synthetic: ModuleType, tmp_path: Path) -> None:
    arms = [synthetic.ARMS[0], replace(synthetic.ARMS[0], version="0.9")]
    answer = read_answer(_run(synthetic, tmp_path, [[DECLINES] * 3, [FINE] * 3], arms))
    assert answer.best is not None and answer.best.name == "alpha==0.9"
    assert answer.sentence.startswith("Use alpha==0.9: ")


def test_without_masks_that_were_compared_it_is_never_sure(synthetic: ModuleType, tmp_path: Path) -> None:
    """What the checks looked at counts, whatever the run was told."""
    for compared, sure in ((0, "fair"), (4, "fair"), (5, "high")):
        rows = [*[COMPARED] * compared, *[FINE] * (10 - compared)]
        answer = _answer(synthetic, tmp_path / f"{compared}", rows, effort=2)
        assert answer.sure == sure
        number = f"only {compared} of the 10 schemas" if compared else "none of the schemas"
        why = f"whole masks were compared with an exact reference in {number} that alpha takes"
        said = (f"The answer is not surer, because {why}.",) if sure == "fair" else ()
        assert answer.doubts == said and answer.certainty[1 : 1 + len(said)] == said
    refusing = [*[COMPARED] * 3, *[DECLINES] * 4]
    assert _answer(synthetic, tmp_path / "refusing", refusing, effort=2).sure == "high", "of those it takes"


def test_the_best_one_is_ahead_in_what_puts_it_first(synthetic: ModuleType, tmp_path: Path) -> None:
    odd = {"findings": (Finding("a_copy_is_independent", 1, "a copy moved"),)}
    fine, works = [COMPARED] * 10, [FINE] * 10
    faulty = [COMPARED | odd] * 10
    beside: list[tuple[str, list[dict[str, Any]], list[dict[str, Any]], str]] = [
        ("a case wrong", fine, [*works[1:], IGNORES], "fair"),
        ("two wrong", fine, [*works[2:], IGNORES, IGNORES], "high"),
        ("a case refused", fine, [*works[1:], DECLINES], "fair"),
        ("faults of the interface", fine, [odd] * 10, "high"),
        ("the best has those, and one more right output", faulty, [*works[1:], DECLINES], "fair"),
        ("the best has those, and two more right outputs", faulty, [*works[2:], DECLINES, DECLINES], "high"),
        ("one fewer wrong, and more refused", [*fine[4:], *[DECLINES] * 4], [*works[1:], IGNORES], "fair"),
        ("one wrong, and three refused", fine, [*works[4:], IGNORES, *[DECLINES] * 3], "high"),
        ("the other refuses too many", [*fine[2:], IGNORES, IGNORES], [*works[7:], *[DECLINES] * 7], "high"),
    ]
    for name, best, other, sure in beside:
        answer = _answer(synthetic, tmp_path / name.replace(" ", "_"), best, other, effort=2)
        assert answer.best is not None and (answer.best.name, answer.sure) == ("alpha", sure), name
        why = "alpha is not ahead of beta:any_whitespace=false by more than one schema"
        assert any(why in doubt for doubt in answer.doubts) == (sure == "fair"), name


def test_too_few_cases_that_could_be_judged_are_named_as_why_it_is_not_sure(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    crash = {"status": "crash", "accepted": None}
    crashes = _answer(synthetic, tmp_path / "crashes", [*[COMPARED] * 2, *[crash] * 8], effort=2)
    assert crashes.sure == "fair" and crashes.doubts[0] == (
        "The answer is not surer, because whole masks were compared with an exact reference in only 2 of the "
        "10 schemas that alpha takes."
    )
    unjudged = _answer(synthetic, tmp_path / "unjudged", [*[FINE] * 4, *[{"valid": None}] * 6], effort=2)
    assert unjudged.sure == "low"
    assert unjudged.doubts[0].startswith(
        "The answer is not surer, because only 4 of 10 schemas could be judged"
    )


def test_what_is_not_kept_is_told_as_what_it_is(synthetic: ModuleType, tmp_path: Path) -> None:
    """Keywords stand alone and as code; a cause that is none is described."""

    def found(*causes: str) -> dict[str, Any]:
        return {"findings": tuple(Finding(TOKENS_LEAD, 0, "allows 5", cause, under=5) for cause in causes)}

    both = _answer(synthetic, tmp_path / "both", [{}], [found("keyword_minimum", "keyword_minimum+type")])
    assert both.sentence.endswith("is silently wrong in 1 (`minimum`, `type`).")
    beyond = _answer(synthetic, tmp_path / "beyond", [{}], [found("no_document")])
    assert beyond.sentence.endswith("is silently wrong in 1 (text with which no document goes on).")
    assert beyond.risks_elsewhere[0].sentence == (
        "beta:any_whitespace=false allows text with which no document goes on: allows 5."
    )


def test_backends_that_are_left_may_fare_like_those_before_them(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    type_is_not_kept = {"findings": (Finding(TOKENS_LEAD, 0, "allows 5", "keyword_type", under=5),)}
    answer = _answer(synthetic, tmp_path, [{}, {}], [{}, REFUSES], [{}, IGNORES], [{}, type_is_not_kept])
    assert answer.sentence.endswith(
        "gamma works on 1 and is silently wrong in 1 (`xs.contains`). One more is ranked behind."
    )


def test_the_certainty_says_with_which_backends_formats_bind(synthetic: ModuleType, tmp_path: Path) -> None:
    """This is no fault, and so decides nothing."""
    found = Finding("a_check", 3, "it forbids", "asserted_format", over=5, documented=True)
    holds = {"findings": (found,)}
    one, other = (
        _answer(synthetic, tmp_path / "a", [{}, {}], [{}, holds]),
        _answer(synthetic, tmp_path / "b", [holds, {}], [{}, holds]),
    )
    assert [backend.works for backend in (*one.backends, *other.backends)] == [2] * 4
    leaves_open = "JSON Schema leaves open whether `format` restricts a string."
    beta = "beta:any_whitespace=false (1 schema)"
    assert f"{leaves_open} {beta} enforces it, and alpha was not seen to." in one.certainty
    assert f"{leaves_open} alpha (1 schema) and {beta} enforce it." in other.certainty


def test_what_a_walk_wrote_is_shown_with_the_constraint_that_it_violates(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    wrote = Finding("walks_end_and_validate", 3, "it violates", "invalid", examples=(b'{"xs": [2]}'.hex(),))
    answer = _answer(synthetic, tmp_path, [CHECKED | {"findings": (wrote,)}, {}])
    assert answer.risks[0].sentence == (
        'alpha lets this through, which `xs.contains` forbids: `{"xs": [2]}`.'
    )


def test_a_control_is_never_recommended_and_in_no_risk(synthetic: ModuleType, tmp_path: Path) -> None:
    arms = (replace(synthetic.ARMS[0], backend="unconstrained", distribution=""), synthetic.ARMS[1])
    answer = read_answer(_run(synthetic, tmp_path, [[IGNORES, IGNORES], [{}, DECLINES]], arms))
    assert [(one.name, one.is_control) for one in answer.backends] == [
        ("beta:any_whitespace=false", False),
        ("unconstrained", True),
    ]
    assert not answer.risks and "unconstrained" not in answer.sentence
    assert "unconstrained enforced nothing: every output was accepted, invalid ones too." in answer.certainty


def test_where_no_document_fits_only_an_output_shows_that_a_backend_is_wrong(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    allows = {**CHECKED, "findings": (Finding(TOKENS_LEAD, 0, "allows", "keyword_required", under=1),)}
    run = _run(synthetic, tmp_path, [[allows, IGNORES]], synthetic.ARMS[:1])
    wrong = [CaseState.SILENTLY_WRONG] * 2
    for unfit, states in (
        ((), wrong),
        (("0" * 12, f"{1:012x}"), [CaseState.OTHER_FAULT, CaseState.SILENTLY_WRONG]),
        ((f"{1:012x}",), wrong),
    ):
        (backend,) = read_answered(run, unfit=unfit)[0].backends
        assert [case.state for case in backend.cases] == states
        assert backend.counts.silently_wrong == states.count(CaseState.SILENTLY_WRONG)


UNREAD = r'{"properties": {"a": {"pattern": "^[^\\0]$"}, "tags": {"uniqueItems": true}}}'
"""The second validator cannot read the pattern."""


def test_where_the_second_validator_says_nothing_the_keyword_is_what_the_document_was_made_to_break(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    document = b'{"tags": [1, 1]}'
    assert violated_constraint(UNREAD, document, None, False) == ""
    for folder, pointers, said in (
        ("made", ("/properties/tags/uniqueItems",), "`tags.uniqueItems` forbids."),
        ("written", (), "the case forbids."),
    ):
        one = Case(
            "0" * 12, "c", Grammar("json_schema", UNREAD), (Instance("", document, False, made_for=pointers),)
        )
        row = synthetic.row(case="c", case_id=one.id, **IGNORES | {"instance": 0}, backend="alpha")
        info = synthetic.info(synthetic.ARMS[:1])
        made = synthetic.write_run(tmp_path / folder, [[(row, b"")]], info, [("first", one)])
        (risk,) = read_answer(made).risks
        assert risk.sentence == f"alpha accepts `{document.decode()}`, which {said}"


@pytest.mark.parametrize(
    ("pointers", "constraint"),
    [
        (("/properties/a~1b/properties/c/minimum", "/type"), "a/b.c.minimum"),
        (("/required",), "required"),
        (("/$defs/a/properties/x/enum",), "enum"),
        (("/allOf/0/required",), "required"),
        (("",), ""),
        ((), ""),
    ],
)
def test_the_place_of_a_broken_keyword_is_named_where_members_lead_there(
    pointers: tuple[str, ...], constraint: str
) -> None:
    assert broken_by(pointers) == constraint


@pytest.mark.parametrize(
    ("schema", "document", "constraint"),
    [
        (SCHEMA, '{"xs": [2]}', "xs.contains"),
        ('{"if": {"required": ["a"]}, "then": {"required": ["b"]}}', '{"a": 1}', "then.required"),
        ('{"dependentRequired": {"a": ["b"]}}', '{"a": 1}', "dependentRequired"),
        ('{"properties": {"v": {"items": {"not": {"type": "string"}}}}}', '{"v": [1, "x"]}', "v[1].not"),
        ('{"prefixItems": [{}, {"minimum": 3}]}', "[1, 2]", "output[1].minimum"),
        (SCHEMA, '{"xs": [1]}', ""),
        (SCHEMA, "{", ""),
    ],
)
def test_the_violated_constraint_is_named_by_place_and_keyword(
    schema: str, document: str, constraint: str
) -> None:
    assert violated_constraint(schema, document.encode(), None, False) == constraint


def test_a_character_that_a_check_begins_is_no_wrong_output() -> None:
    from harness.outcomes.case_state import state_of_fault
    from harness.rows.row import Finding

    shown = Finding(check="invalid_utf8_is_refused_at_once", under=1)
    assert state_of_fault("", shown) == CaseState.OTHER_FAULT
    assert state_of_fault("", Finding(check="the_mask_is_exact", under=1)) == CaseState.SILENTLY_WRONG


def test_another_fault_is_named_where_words_say_it(synthetic: ModuleType, tmp_path: Path) -> None:
    bytes_of_no_text = Finding(
        "invalid_utf8_is_refused_at_once", 3, "the mask allows b'\\xa0'", "surrogate", under=2
    )
    rollback = Finding("rollback_restores_the_mask", 3, "a bit differs", "mask")
    wrong: list[dict[str, Any]] = [{"findings": (bytes_of_no_text,)}, {"findings": (rollback,)}, IGNORES]
    answer = _answer(synthetic, tmp_path, [FINE, FINE, FINE], wrong)
    name = "beta:any_whitespace=false"
    assert answer.sentence.endswith(
        f"{name} gives right output in 2, is silently wrong in 1 (`xs.contains`) and has another fault in 2 "
        "of those with right output (bytes that make no character)."
    )
    assert [evidence(case) for case in answer.backends[1].cases[:2]] == [
        "bytes that make no character",
        "“rollback restores the mask” does not hold: a bit differs",
    ]
    said = [risk.sentence for risk in answer.risks_elsewhere]
    assert f"{name} takes bytes that make no character: the mask allows b'\\xa0'." in said


def test_what_is_left_out_behind_a_number_of_cases_is_said_to_be_causes(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    def found(number: int) -> dict[str, Any]:
        names = "+".join("abcde"[:number])
        return {"findings": (Finding(TOKENS_LEAD, 0, "allows 5", f"keyword_{names}", under=5),)}

    for number, more in ((3, ""), (4, " and 1 more cause"), (5, " and 2 more causes")):
        said = _answer(synthetic, tmp_path / str(number), [{}], [found(number)]).sentence
        assert said.endswith(f"is silently wrong in 1 (`a`, `b`, `c`{more}).")


def test_medians_that_stand_side_by_side_are_over_the_same_cases(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    quick, slow = {"compile_ns": 95_000}, {"compile_ns": 995_000}
    one = _answer(synthetic, tmp_path / "one", [quick, slow, slow], [quick, DECLINES, DECLINES])
    assert [backend.first_mask_ns for backend in one.backends] == [1_000_000, 100_000]
    assert [backend.costs for backend in one.backends] == [Costs(1, True, 100_000, None)] * 2
    screen = " ".join(" ".join(costs(one.backends, Console())).split())
    assert "first mask, median 100 µs 100 µs each token" in screen
    assert "The medians are over the 1 case that both solve: compiled, and no output" in screen

    none = _answer(synthetic, tmp_path / "none", [quick, slow, DECLINES], [DECLINES, DECLINES, quick])
    assert [backend.costs.is_shared for backend in none.backends] == [False] * 2
    screen = " ".join(" ".join(costs(none.backends, Console())).split())
    assert "first mask, median 100 µs (2 cases) 100 µs (1 case)" in screen
    assert "A median with a number beside it is over the cases that this backend compiles." in screen
    alone = _answer(synthetic, tmp_path / "alone", [quick, slow, DECLINES])
    assert costs(alone.backends, Console())[-2].endswith("100 µs (2 cases)")


def test_what_a_token_costs_is_told_of_the_cases_that_all_solve(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    best = _answer(synthetic, tmp_path, [FINE] * 2).backends[0]
    some, every = (replace(best, costs=Costs(cases, True, 1.0, 2000.0)) for cases in (1, 2))
    assert (
        words._cheaper(every, [every], "case") == " Half of the tokens cost at most: alpha 2 µs, alpha 2 µs."
    )
    assert words._cheaper(some, [some], "case").startswith(
        " In the 1 case that all solve, half of the tokens cost at most: alpha 2 µs"
    )


def test_what_is_no_utf8_is_told_in_other_words_in_each_of_its_two_states(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    wrong = [Finding("walks_end_and_validate", 3, "the walk ended", "invalid_utf8")]
    wrong.append(Finding(TOKENS_LEAD, 0, "it allows 357 tokens", "invalid_utf8", under=357))
    wrong.append(
        Finding("invalid_utf8_is_refused_at_once", 3, "the mask allows b'\\xa0'", "surrogate", under=2)
    )
    answer = _answer(synthetic, tmp_path, [FINE] * 3, [{"findings": (one,)} for one in wrong])
    assert [(case.state, evidence(case)) for case in answer.backends[1].cases] == [
        (CaseState.OTHER_FAULT, "bytes that make no character"),
        (CaseState.SILENTLY_WRONG, "tokens that are no UTF-8"),
        (CaseState.OTHER_FAULT, "bytes that make no character"),
    ]
    assert "or bytes that make no character, which decoders replace." in " ".join(answer.certainty)


def test_a_refused_only_case_is_told_once(synthetic: ModuleType, tmp_path: Path) -> None:
    alone = _answer(synthetic, tmp_path / "alone", [DECLINES])
    assert alone.sentence == "alpha cannot be recommended: it refuses the one schema."
    beside = _answer(synthetic, tmp_path / "beside", [{}], [DECLINES])
    assert beside.sentence == ("Use alpha: it works on the one schema. beta:any_whitespace=false refuses it.")
