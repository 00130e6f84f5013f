"""The advice: what is walked for it, what the run answers, and what would work instead."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.backend.arm import arm_names
from harness.backend.describe import Description, catalogue
from harness.backend.installed import installed_backends
from harness.backend.vocabulary.fetched import EVERY
from harness.cases.models import NAMED
from harness.cases.suite import find_suite
from harness.diagnose.advise.asked import Asked, asked_of
from harness.diagnose.advise.engines import Offer, offer_of
from harness.diagnose.advise.max_tokens import CaseBudget, largest_budget
from harness.diagnose.advise.notes import on_requests, stand_ins, untried
from harness.diagnose.advise.rewritten import Answers, Change, rewritten
from harness.diagnose.advise.stored import WHOSE, StoredAdvice, stored_advice, verb_for, write_advice
from harness.diagnose.advise.unsatisfiable import unsatisfiable_of
from harness.errors import BadInput
from harness.outcomes.answer import Answer, BackendAnswer, read_answer, read_answered
from harness.outcomes.endless import Endless
from harness.rows.folder import named_by_errors
from harness.rows.resume import NothingToResume
from harness.rows.store import has_begun, read_cases, read_info
from harness.running.limits import MEMORY_GB, most_workers
from harness.running.progress import RunProgress
from harness.running.session import Request, run

EFFORT = 2
"""Places of a case at which each check looks."""
TIMEOUT_S = 10.0
"""Seconds for a compile, beyond which a backend is too slow for a request that waits."""
CHECK_TIMEOUT_S = 1.0
"""Processor seconds for the checks of a case, so that a backend whose masks are slow does not keep the answer
waiting; the checks that are left out are told as such on the proof's page."""
VOCABULARY = "tekken"
"""The tokenizer where the user names none: one that people serve, and that needs no download."""


@dataclass(frozen=True)
class Advice:
    """Which backend to use for the cases of a user, and what to change."""

    folder: Path
    """The run on which it rests."""
    vocabulary: str
    answer: Answer
    engine: str
    """The serving engine that was asked about; empty where none was."""
    offer: Offer | None
    """What that engine has."""
    changes: tuple[Change, ...]
    """For each case that a backend refuses or gets wrong: a rewrite with which more backends work, where one
    was found."""
    unchanged: tuple[str, ...]
    """The names of the cases for which no rewrite helped."""
    not_looked_at: int
    """The number of further cases for which no rewrite was looked for, because there are so many."""
    unsatisfiable: tuple[str, ...]
    """The names of the schemas that no document fits; no rewrite was looked for."""
    unfit: tuple[str, ...]
    """The ids of these schemas."""
    endless: tuple[str, ...]
    """For each backend, whether an output can go on until its tokens are used up, and in what."""
    asked: Asked
    """What the user's own cases are asked for as."""
    has_schemas: bool
    """Is a case a JSON Schema?"""
    budget: CaseBudget | None
    """The case whose outputs take the most tokens at least; None where no case has a reference."""

    @property
    def engine_option(self) -> str:
        """Returns the option of the engine that chooses the backend to use; empty where there is none."""
        if self.offer is None or self.answer.best is None:
            return ""
        return self.offer.arms.get(arm_name(self.answer.best), "")

    @property
    def works(self) -> bool:
        """Does every case work with the backend to use?"""
        best = self.answer.best
        return best is not None and best.works == best.counts.cases

    @property
    def with_all(self) -> str:
        """Returns, as a clause, on how many cases the backend to use works with all changes; empty where it
        gains none, and of a single case, whose change says it."""
        best = self.answer.best
        gained = 0 if best is None else sum(best.name in change.gained for change in self.changes)
        if best is None or not gained or best.counts.cases == 1:
            return ""
        changed = "all of them" if len(self.changes) > 1 else "it"
        works, cases = best.works + gained, best.counts.cases
        reached = f"all {cases}" if works == cases else f"{works} of the {cases}"
        return f"with {changed} {best.name} works on {reached}"

    @property
    def notes(self) -> tuple[str, ...]:
        """Returns what a reader must know of how the engine was stood in for, in sentences."""
        tried = [arm_name(backend) for backend in self.answer.backends]
        return tuple(stand_ins(self.engine, self.offer, tried, self.has_schemas))

    @property
    def on_requests(self) -> tuple[str, ...]:
        """Returns what the engine makes of the user's tools and requests, in sentences."""
        return tuple(on_requests(self.engine, self.offer, self.asked))

    @property
    def stored(self) -> StoredAdvice:
        """Returns the part that does not follow from the rows of the run, and so is stored beside them."""
        return StoredAdvice(
            self.engine,
            self.engine_option,
            (*self.on_requests, *self.notes),
            self.changes,
            self.unchanged,
            self.answer.is_recommended,
            self.not_looked_at,
            self.with_all,
            self.unsatisfiable,
            untried(self.engine, self.offer),
            self.unfit,
        )


def arm_name(backend: BackendAnswer) -> str:
    """Returns the backend with its options, as `--backends` takes it."""
    name, options = backend.key[0], backend.key[2]
    return f"{name}:{options}" if options else name


def advise(
    sources: Sequence[str],
    say: Callable[[str], None],
    report: Callable[[RunProgress], None],
    *,
    engine: str = "",
    backends: str | None = None,
    tokenizer: str = "",
    out: Path | None = None,
    resume: bool = False,
    jobs: int | None = None,
    argv: Sequence[str] = (),
) -> Advice:
    """Walks the cases of the sources through the backends, and returns what follows from it.

    `backends` are those of the engine if none are named, and all that are installed without an engine. One of
    an engine's libraries that is named without options is tried as the engine sets it. With `resume`, what
    was walked into `out` before is not walked again. Raises BadInput.
    """
    if tokenizer == EVERY:
        raise BadInput(
            f'advice is about one tokenizer, not "{EVERY}": name the one that you serve; '
            "`grammarbench run --vocabularies all` compares them"
        )
    if out is not None:
        stored_advice(out)  # raises: a file of this name that is not ours is not overwritten
    # A mistake in a source is told before all backends are looked at; one of a model, by the run.
    names = [source for source in sources if Path(source).exists() or not NAMED.fullmatch(source)]
    asked = asked_of(find_suite(source_of(name)) for name in names)
    offer = offer_of(engine, catalogue(), for_tools=asked.tools > 0) if engine else None
    if backends:
        arms = offer.as_set(backends) if offer else backends
    else:
        arms = ",".join(offer.arms) if offer else installed_backends(say)
    vocabulary = tokenizer or VOCABULARY
    request = Request(
        suites=tuple(map(source_of, sources)),
        backends=arms,
        vocabularies=(vocabulary,),
        profile="default",
        out=out,
        resume=resume,
        jobs=jobs or most_workers(int(MEMORY_GB * 1e9)),
        timeout_s=TIMEOUT_S,
        check_timeout_s=CHECK_TIMEOUT_S,
        effort=EFFORT,
        argv=tuple(argv),
    )
    folder, described = _walked(request, say, report)
    with named_by_errors(folder, out is None):
        endless = Endless(arm_names(read_info(folder).arms))
        cases = [(suite, case) for suite, _, case in read_cases(folder)]
        unsatisfiable = unsatisfiable_of(cases, say)
        unfit = tuple(case.id for _, case in unsatisfiable)
        answer, _, _ = read_answered(
            folder,
            endless.add,
            verb=verb_for(engine),
            whose=WHOSE,
            untried=untried(engine, offer),
            unfit=unfit,
        )
        changes, unchanged, not_looked_at = rewritten(
            [pair for pair in cases if pair not in unsatisfiable],
            answer,
            lambda suite, out: _answers_of(
                replace(request, suites=(str(suite),), out=out, resume=has_begun(out)), say, report, described
            ),
            folder,
            say,
        )
        say("counting the tokens that each output takes at least ...")
        advice = Advice(
            folder,
            vocabulary,
            answer,
            engine,
            offer,
            changes,
            unchanged,
            not_looked_at,
            tuple(case.name for _, case in unsatisfiable),
            unfit,
            tuple(endless.sentences()),
            asked,
            any(case.grammar.dialect == "json_schema" for _, case in cases),
            largest_budget([case for _, case in cases], vocabulary),
        )
        write_advice(folder, advice.stored)
        return advice


def source_of(source: str) -> str:
    """Returns the source, as a path where something of that name lies here: a folder `tools` is the user's,
    though a suite of ours has that name too."""
    return f".{os.sep}{source}" if Path(source).exists() and not Path(source).is_absolute() else source


def _walked(
    request: Request,
    say: Callable[[str], None],
    report: Callable[[RunProgress], None],
    described: Description | None = None,
) -> tuple[Path, Description | None]:
    """Walks the request, and returns where its rows lie and what its backends are; None for these where the
    rows are all there already. `described` is as in `run`. Raises BadInput."""
    try:
        walked = run(request, say, report, described)
    except NothingToResume:
        assert request.out is not None  # a run without a folder is a new one
        return request.out, described
    return walked.folder, walked.described


def _answers_of(
    request: Request,
    say: Callable[[str], None],
    report: Callable[[RunProgress], None],
    described: Description | None,
) -> Answers:
    """Walks the request, and returns what each case is like, by its id and the arm's name. `described` is
    what is known of the backends."""
    folder, _ = _walked(request, say, report, described)
    answer = read_answer(folder)
    return {
        (case.case_id, backend.name): case
        for backend in (*answer.backends, *answer.others)
        for case in backend.cases
    }
