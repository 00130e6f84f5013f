"""How sure an answer is, and what that rests on, in sentences."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from harness.checks import category, made
from harness.outcomes.answer.backends import BackendAnswer, lost_to_us
from harness.outcomes.answer.cases import CaseKey, Proofs, at_least, number_of
from harness.outcomes.answer.words import ids, let_through, lost_line, more_is_right
from harness.outcomes.case_state import CaseState
from harness.text import counted, listed

NOTHING = {
    "known": "nothing is known",
    "comparable": "nothing can be compared",
    "complete": "nothing is concluded",
}
"""What stands in place of how sure an answer is where there is none: because nothing was judged, because the
backends did not walk the same, or because a run is not whole."""

NO_REFERENCE = "no instance with a known verdict, and no mask that was compared with an exact reference"
"""Why a case is not judged."""

RIGHT_OUTPUT = (
    "Output counts as right in the cases that work, and in judged cases whose only faults are of the "
    "interface, such as rollback, or bytes that make no character, which decoders replace."
)
"""What a backend's number of right outputs counts."""


JUDGED, HALF_JUDGED = 0.9, 0.5
"""The share of the cases that are judged where an answer is sure, and the share below which it is low."""

CUT_SHORT = 0.1
"""The share of cases up to which an answer is sure though the checks of the best backend were not all made in
them."""

COMPARED = 0.5
"""The share of the cases that the best backend takes in which whole masks are compared where an answer is
sure."""


def sure(
    best: BackendAnswer | None,
    judged: Sequence[BackendAnswer],
    proofs: Proofs,
    lost: Collection[CaseKey],
    untried: str = "",
) -> str:
    """Returns how sure the answer is for these cases: by the share of them that was judged and lost on none
    of the backends, and by whether the best one is ahead in these by more than one case. It is high only
    where all had the same limits, the masks of enough of the best one's cases were compared, its checks were
    all made but in a few, and nothing is left `untried` that the answer is about too."""
    if best is None:
        return NOTHING["known"]
    if not untried and not any(_lacks(best, judged, proofs, lost, "case")):
        return "high"
    measured = best.without(lost)
    share = measured.counts.judged / best.counts.cases
    apart = len(judged) < 2 or _is_apart(measured, judged[1].without(lost))
    return "fair" if share >= JUDGED or (share >= HALF_JUDGED and apart) else "low"


def why_not_surer(
    best: BackendAnswer,
    judged: Sequence[BackendAnswer],
    proofs: Proofs,
    lost: Collection[CaseKey],
    noun: str,
    untried: str = "",
) -> Iterator[str]:
    """Yields a sentence that says why the answer is not sure (`high`); nothing where it is. `untried` is a
    clause for it about what was not tried."""
    if lacks := [*_lacks(best, judged, proofs, lost, noun), *([untried] if untried else [])]:
        yield f"The answer is not surer, because {listed(lacks)}."


def _lacks(
    best: BackendAnswer, judged: Sequence[BackendAnswer], proofs: Proofs, lost: Collection[CaseKey], noun: str
) -> Iterator[str]:
    """Yields a clause for each thing that a sure answer has and this one lacks."""
    measured, total = best.without(lost), best.counts.cases
    if measured.counts.judged / total < JUDGED:
        whole = " and measured with all backends" if lost else ""
        yield f"only {measured.counts.judged:,} of {counted(total, noun)} could be judged{whole}"
    if len(judged) > 1 and not _is_apart(measured, judged[1].without(lost)):
        # What puts it first may be refusals of the other alone, of cases that nothing could judge.
        refused = judged[1].count(CaseState.REFUSED) - best.count(CaseState.REFUSED) > 1
        could = " that could be judged" if refused else ""
        yield f"{best.name} is not ahead of {judged[1].name} by more than one {noun}{could}"
    cut_short = sum(case.was_cut_short for case in best.cases)
    if cut_short / total > CUT_SHORT:
        yield f"the checks of {best.name} were cut short in {counted(cut_short, noun)}"
    taken, compared = total - best.counts.refused, len(_compared(best, proofs))
    if not 0 < COMPARED * taken <= compared:
        whose = f"only {compared:,} of the {counted(taken, noun)}" if compared else f"none of the {noun}s"
        yield f"whole masks were compared with an exact reference in {whose} that {best.name} takes"
    if len({backend.limits for backend in judged}) > 1:
        yield "the backends were not tried under the same limits"


def _is_apart(best: BackendAnswer, other: BackendAnswer) -> bool:
    """Is the best one ahead by more than one case in what puts it first? Other faults count only where it is
    behind in nothing that weighs more."""
    wrong = other.goes_wrong - best.goes_wrong
    right = best.right_outputs - other.right_outputs
    faults = other.counts.other_fault - best.counts.other_fault
    return max(wrong, right) > 1 or (min(wrong, right) >= 0 and faults > 1)


def _compared(backend: BackendAnswer, proofs: Proofs) -> set[CaseKey]:
    """Returns the cases in which whole masks of the backend were compared with what the grammar allows."""
    return {*proofs.masks_compared.get(backend.key, ()), *proofs.places.get(backend.key, ())}


def grounds(
    best: BackendAnswer | None,
    backends: Sequence[BackendAnswer],
    proofs: Proofs,
    noun: str,
    untried: str = "",
) -> Iterator[str]:
    """Yields what the answer rests on; `backends` are all that were tried, the best first. `untried` is as in
    `why_not_surer`."""
    if best is None:
        yield from _why_nothing(backends, proofs, noun)
        return
    judged = [backend for backend in backends if backend.counts.judged and not backend.is_control]
    total = best.counts.cases
    by = []
    right, wrong = proofs.valid.get(best.key), proofs.invalid.get(best.key)
    valid, invalid = number_of(right), number_of(wrong)
    if valid or invalid:
        outputs = counted(invalid, "invalid output")
        by.append(f"{at_least(right)}{valid:,} valid and {at_least(wrong)}{outputs}")
    if compared := proofs.masks_compared.get(best.key):
        number = counted(len(compared), noun)
        by.append(f"whole masks of {number} compared with an exact reference")
    # A refused case is judged by other backends, so that no output of it is among these.
    whose = f"; {best.name} was judged on those that it takes" if best.counts.refused else ""
    yield (
        f"{f'In {best.run} ' if best.run else ''}{best.counts.judged:,} of {counted(total, noun)} "
        f"{'was' if total == 1 else 'were'} judged"
        f"{f'{whose}, by {listed(by)}' if by else ''}."
    )
    yield from why_not_surer(best, judged, proofs, lost_to_us(backends), noun, untried)
    if places := _places(judged, proofs):
        yield (
            f"At {counted(sum(places.values()), 'place')} in {counted(len(places), noun)} the whole "
            "mask was compared with what the possible documents allow."
        )
    yield from _controls(backends)
    yield from unfinished(backends, proofs, noun)
    held = {backend.name: len(proofs.formats_held.get(backend.key, ())) for backend in judged}
    if any(held.values()):
        by = [f"{name} ({counted(number, noun)})" for name, number in held.items() if number]
        rest = "" if held[best.name] else f", and {best.name} was not seen to"
        enforce = "enforces" if len(by) == 1 else "enforce"
        yield f"JSON Schema leaves open whether `format` restricts a string. {listed(by)} {enforce} it{rest}."
    if proofs.dialects & {"regex", "lark"}:
        yield from _readings(judged)
    if best.counts.not_judged:
        yield (
            f"{counted(best.counts.not_judged, noun)} could not be judged, though {best.name} compiles "
            f"{'it' if best.counts.not_judged == 1 else 'them'}: there is {NO_REFERENCE}."
        )
    if unknown := best.counts.refused_unjudged:
        yield f"For {counted(unknown, f'refused {noun}')} there was nothing to judge a backend by."
    yield from unchecked(judged)
    if len({backend.limits for backend in judged}) > 1:
        each = "; ".join(f"{backend.name}, {backend.limits}" for backend in judged)
        yield f"They were not all tried under the same limits: {each}."
    if any(more_is_right(backend) for backend in judged):
        yield RIGHT_OUTPUT
    if len(judged) > 1:
        one, other = judged[0], judged[1]
        lost = lost_to_us((one, other))
        states = {(case.suite, case.case_id): case.state for case in other.without(lost).cases}
        differ = [
            case for case in one.cases
            if (case.suite, case.case_id) in states and states[case.suite, case.case_id] != case.state
        ]  # fmt: skip
        where = " of those that could be measured with both" if lost else ""
        yield f"{one.name} and {other.name} differ in {counted(len(differ), noun)}{where}."
    yield f"A {noun} that works showed no fault here; that is no proof for outputs that were not tried."


def _readings(judged: Sequence[BackendAnswer]) -> Iterator[str]:
    """Yields how the backends read regular expressions; nothing where none states a reading as its own."""
    by_reader: dict[str, list[str]] = {}
    for backend in judged:
        if backend.reads_as:
            by_reader.setdefault(backend.reads_as, []).append(backend.name)
    said = [
        f"{listed(names)} {'has' if len(names) == 1 else 'have'} that of {reader}"
        for reader, names in by_reader.items()
    ]
    if said:
        yield (
            "A regular expression may mean something else in another dialect, such as the digits that `\\d` "
            f"takes, and no backend is blamed for its own: {listed(said)}."
        )


def _places(judged: Sequence[BackendAnswer], proofs: Proofs) -> dict[CaseKey, int]:
    """Returns at how many places of each case whole masks were compared, on the backend where they were
    most."""
    places: dict[CaseKey, int] = {}
    for backend in judged:
        for key, number in proofs.places.get(backend.key, {}).items():
            places[key] = max(number, places.get(key, 0))
    return places


def grounds_unranked(
    judged: Sequence[BackendAnswer], backends: Sequence[BackendAnswer], proofs: Proofs, noun: str
) -> Iterator[str]:
    """Yields what is known where none of the judged backends is put before another; `backends` are all that
    were tried."""
    if len(judged) > 1:
        common = len(set.intersection(*map(ids, judged)))
        number = counted(common, noun) if common else f"No {noun}"
        yield f"{number} {'were' if common > 1 else 'was'} tried with all of them."
    else:
        cases = judged[0].counts.cases
        yield f"{counted(cases, noun)} {'was' if cases == 1 else 'were'} tried."
    yield from unchecked(judged)
    if not any(_compared(backend, proofs) for backend in judged):
        yield "No whole mask was compared with what the grammar allows."
    yield from _controls(backends)
    yield from unfinished(backends, proofs, noun)
    if any(more_is_right(backend) for backend in judged):
        yield RIGHT_OUTPUT
    yield f"A {noun} that works showed no fault here; that is no proof for outputs that were not tried."


def _why_nothing(backends: Sequence[BackendAnswer], proofs: Proofs, noun: str) -> Iterator[str]:
    """Yields why no backend was judged."""
    yield from _controls(backends)
    able = [backend for backend in backends if not backend.is_control]
    if not any(backend.cases for backend in backends):
        yield f"No {noun} was walked."
    lost = {
        (case.suite, case.case_id)
        for backend in able
        for case in backend.cases
        if case.state == CaseState.NOT_MEASURED
    }
    if lost:
        yield lost_line(lost, noun)
    yield from unfinished(able, proofs, noun)
    states = {case.state for backend in able for case in backend.cases}
    if CaseState.NOT_JUDGED in states:
        yield f"{'Of the others there' if lost else 'There'} is {NO_REFERENCE}."
    elif CaseState.REFUSED in states:
        yield f"{'The others were' if lost else f'Every {noun} was'} refused, and there is {NO_REFERENCE}."


def unchecked(judged: Sequence[BackendAnswer]) -> Iterator[str]:
    """Yields of which kinds no check was made with any of the backends, but for the decoding, which a run
    does only if it is told to."""
    if all(backend.checked.is_nothing for backend in judged):
        yield "No checks were made; only outputs were judged."
        return
    told = {backend.checked for backend in judged}
    looked_at = {category(name) for one in told for name in made(one.effort, one.decode, one.only)}
    kinds = dict.fromkeys(map(category, made(effort=1, decode=False)))
    if left := [kind for kind in kinds if kind not in looked_at]:
        yield f"No checks were made of {listed(left)}."


def _controls(backends: Sequence[BackendAnswer]) -> Iterator[str]:
    """Yields which backends are controls; nothing where none is."""
    yield from let_through([backend for backend in backends if backend.is_control])


def unfinished(backends: Sequence[BackendAnswer], proofs: Proofs, noun: str) -> Iterator[str]:
    """Yields in how many cases the checks were not all made, with which backends; nothing where all were."""
    cut = [(backend.name, len(proofs.cut_short.get(backend.key, ()))) for backend in backends]
    short = [f"{counted(number, noun)} of {name}" for name, number in cut if number]
    if short:
        yield f"The time for the checks was up before all were made in {listed(short)}."
