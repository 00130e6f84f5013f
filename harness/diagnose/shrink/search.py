"""Searches for the smallest failure: it takes the first smaller candidate that fails alike, until none does
or the budget is spent."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from harness.diagnose.shrink.bench import Bench
from harness.diagnose.shrink.edits import Candidate, repairs, steps
from harness.diagnose.shrink.fault import Fault, Shrunk, observed
from harness.diagnose.shrink.stepping import END, words_of
from harness.diagnose.shrink.validity import Validity
from harness.oracle.judge import Judge

CANDIDATES = 400
SECONDS = 60.0
HANG_SECONDS = 2.0
"""The seconds after which a candidate counts as hanging, where hanging is the failure; also the most that any
other candidate may take."""

REPAIRS = 120
"""The most instances that are judged for a grammar which the present instance no longer fits."""

REPAIRS_TRIED = 2
"""How many of them are given to the backend."""

JUDGE_SECONDS = 2.0


def shrink(
    fault: Fault,
    *,
    seconds: float = SECONDS,
    candidates: int = CANDIDATES,
    hang_seconds: float = HANG_SECONDS,
    python: str = sys.executable,
) -> Shrunk:
    """Returns the smallest failure with the same outcome that the budget finds; the fault itself where
    nothing smaller, or nothing at all, shows.

    The same fault and candidates give the same result, unless the seconds end the search. Raises BadInput if
    the backend does not load."""
    with Bench(fault, python) as bench, Judge(JUDGE_SECONDS) as judge:
        return _Search(
            fault, bench, Validity(judge, fault.options), time.monotonic() + seconds, candidates, hang_seconds
        ).run()


@dataclass(frozen=True)
class _Failing:
    """A candidate that fails alike, and the backend's answer to it."""

    candidate: Candidate
    answer: dict[str, Any]


class _Search:
    def __init__(
        self,
        fault: Fault,
        bench: Bench,
        validity: Validity,
        ends: float,
        candidates: int,
        hang_seconds: float,
    ) -> None:
        self.fault, self.bench, self.validity, self.ends, self.candidates = (
            fault,
            bench,
            validity,
            ends,
            candidates,
        )
        self.is_hang = fault.outcome.status == "timeout"
        self.deadline = min(fault.timeout_s, hang_seconds) if self.is_hang else fault.timeout_s
        self.hang_seconds = hang_seconds
        self.known: set[Candidate] = set()
        """The candidates that were already judged or tried."""
        self.must_be_right = validity.is_right(fault.grammar)
        self.is_spent = False

    def run(self) -> Shrunk:
        best = self._start()
        if best is None:
            return self._result(
                _Failing(Candidate(self.fault.grammar, self.fault.content, None), {}), 0, shown=False
            )
        if not self._agrees():
            self.is_spent = True
            answer = best.answer | {
                "text": f"our judge does not call the instance {'valid' if self.fault.valid else 'invalid'}"
            }
            return self._result(_Failing(best.candidate, answer), 0, shown=True)
        taken = 0
        while not self.is_spent:
            best, successes = self._round(best)
            taken += successes
            if not successes:
                break
        return self._result(self._waited_for(best), taken, shown=True)

    def _start(self) -> _Failing | None:
        """Returns the fault itself, with as few tokens as show it: bytes alone, then the run's tokens as
        well, then the run's vocabulary."""
        whole = Candidate(self.fault.grammar, self.fault.content, ())
        for stage in ("bytes", "tokens", "all"):
            candidate = replace(
                whole, words=() if stage == "bytes" else self._words(whole) if stage == "tokens" else None
            )
            began = time.monotonic()
            failing = None if candidate in self.known else self._try(candidate, self.fault.valid)
            self.known.add(candidate)
            if failing is not None:
                if not self.is_hang:
                    self.deadline = min(
                        self.fault.timeout_s, max(self.hang_seconds, 3 * (time.monotonic() - began))
                    )
                return failing
        return None

    def _words(self, whole: Candidate) -> tuple[bytes, ...] | None:
        """Returns the tokens of more than a byte with which the run met the fault."""
        walk = self.bench.tokens(replace(whole, words=None), self.fault.walk)
        return None if walk is None else words_of(walk)

    def _round(self, best: _Failing) -> tuple[_Failing, int]:
        """Tries every step once, as far as the steps of one candidate are those of the next."""
        successes = index = 0
        goes_on = True
        while goes_on:
            goes_on = False
            for step in islice(steps(best.candidate), index, None):
                smaller = self._smaller(step(), best.candidate)
                if self.is_spent:
                    return smaller or best, successes + bool(smaller)
                if smaller is not None:
                    # A great step begins anew; after a small one, what comes next stands where it stood.
                    index = 0 if smaller.candidate.size[0] <= 0.9 * best.candidate.size[0] else index
                    best, successes, goes_on = smaller, successes + 1, True
                    break
                index += 1
        return best, successes

    def _smaller(self, candidate: Candidate, best: Candidate) -> _Failing | None:
        """Returns the candidate, or one with an instance repaired to go with its grammar, if it is smaller,
        right, and fails alike."""
        if candidate.size >= best.size or candidate in self.known:
            return None
        self.known.add(candidate)
        if (
            self.must_be_right
            and candidate.grammar != best.grammar
            and not self.validity.is_right(candidate.grammar)
        ):
            return None
        if not self._is_judged or candidate.content is None:
            return self._try(candidate, None)
        if self.validity.of(candidate.grammar, candidate.content) == self.fault.valid:
            return self._try(candidate, self.fault.valid)
        # An invalid instance that became valid lost what was wrong with it; what could be made wrong with it
        # again is another failure.
        is_outgrown = (
            bool(self.fault.valid) and candidate.grammar != best.grammar and candidate.content == best.content
        )
        return self._repaired(candidate) if is_outgrown else None

    def _agrees(self) -> bool:
        """Can smaller instances be judged at all, that is, is this one judged as the run has it?"""
        fault = self.fault
        if not self._is_judged or fault.content is None or fault.valid is None:
            return True
        return self.validity.agrees(fault.grammar, fault.content, fault.valid)

    @property
    def _is_judged(self) -> bool:
        """Must a candidate's instance be as valid as the fault's?"""
        return self.fault.outcome.needs_validity or (bool(self.fault.check) and self.fault.valid is not None)

    def _repaired(self, candidate: Candidate) -> _Failing | None:
        tried = 0
        for repaired in repairs(candidate, REPAIRS):
            if self._has_no_time() or tried == REPAIRS_TRIED:
                break
            if (
                repaired in self.known
                or self.validity.of(repaired.grammar, repaired.content or b"") != self.fault.valid
            ):
                continue
            self.known.add(repaired)
            tried += 1
            failing = self._try(repaired, self.fault.valid)
            if failing is not None:
                return failing
        return None

    def _try(self, candidate: Candidate, valid: bool | None) -> _Failing | None:
        if self._has_no_time():
            return None
        # Where hanging is the failure, no candidate may be called so for want of time.
        deadline = self.deadline if self.is_hang else min(self.deadline, self.ends - time.monotonic())
        answer = self.bench.try_(candidate, valid, deadline)
        return _Failing(candidate, answer) if self.fault.outcome in observed(answer, valid) else None

    def _has_no_time(self) -> bool:
        needed = self.deadline if self.is_hang else 0.0
        self.is_spent = (
            self.is_spent or self.bench.tried >= self.candidates or time.monotonic() + needed >= self.ends
        )
        return self.is_spent

    def _waited_for(self, best: _Failing) -> _Failing:
        """Returns the best candidate, tried with the run's own deadline if it hangs and there is time for
        that."""
        longest = self.fault.timeout_s
        if not self.is_hang or longest <= self.deadline or time.monotonic() + longest > self.ends:
            return best
        answer = self.bench.try_(best.candidate, None, longest)
        ended = answer["status"] != "timeout"
        return _Failing(
            best.candidate, {"text": f"an end, but not within {self.deadline:g} s"} if ended else answer
        )

    def _result(self, best: _Failing, taken: int, shown: bool) -> Shrunk:
        candidate, answer = best.candidate, best.answer
        walk: list[str] | None = answer.get("walk")
        text = answer.get("text", "")
        if self.fault.outcome.check and shown:
            index = observed(answer, None)[1:].index(self.fault.outcome)
            walk = answer["walks"][index] if "walks" in answer else walk
            text = answer["findings"][index]["text"]
        if "walk" not in answer:  # the child was lost
            walk = self.bench.tokens(candidate)
        words = candidate.words
        if words is None and walk is not None and self._few_suffice(candidate, walk):
            words = words_of(walk)
        script, library = self.bench.script(candidate)
        return Shrunk(
            grammar=candidate.grammar,
            content=candidate.content,
            valid=self.fault.valid,
            outcome=self.fault.outcome,
            vocabulary=self.fault.vocabulary,
            words=words,
            walk=tuple(bytes.fromhex(token) for token in walk or () if token != END),
            ends=walk is not None and walk[-1:] == [END],
            steps=taken,
            tried=self.bench.tried,
            is_minimal=shown and not self.is_spent,
            shown=shown,
            asserts_formats=self.validity.asserts_formats,
            text=str(text),
            script=script if walk is not None else "",
            library=library,
        )

    def _few_suffice(self, candidate: Candidate, walk: list[str]) -> bool:
        """Does the backend say the same to these tokens where there are no others but the bytes?

        A check may need the run's vocabulary to find the walk, which then needs no more than its own tokens
        to be shown.
        """
        steps = self.bench.steps(candidate, walk)
        return steps is not None and steps == self.bench.steps(replace(candidate, words=words_of(walk)), walk)
