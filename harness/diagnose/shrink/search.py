"""Searches for the smallest failure: it takes the first smaller candidate that fails alike, until none does
or the budget is spent."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, replace
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

LONGEST_SHARE = 0.25
"""The most of the budget that one candidate is waited for, to see whether it hangs as the run saw it."""

RECHECKS = 2
"""For how many such waits time is kept; where candidates end soon there is time for more."""

REPAIRS_TRIED = 2
"""How many instances in place of one that no longer fits its grammar are given to the backend."""

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
        return _Search(fault, bench, Validity(judge, fault.options), seconds, candidates, hang_seconds).run()


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
        seconds: float,
        candidates: int,
        hang_seconds: float,
    ) -> None:
        self.fault, self.bench, self.validity = fault, bench, validity
        self.wanted = fault.outcome
        """What a candidate must show."""
        self.is_hang = fault.outcome.status == "timeout"
        self.deadline = min(fault.limit_s, hang_seconds) if self.is_hang else fault.timeout_s
        self.hang_seconds = hang_seconds
        self.longest = min(fault.limit_s, max(hang_seconds, LONGEST_SHARE * seconds))
        """The seconds for which what is returned must hang, where hanging is the failure."""
        self.rechecks = self.is_hang and self.longest > self.deadline
        kept = RECHECKS if self.rechecks else 0
        self.all_ends = time.monotonic() + seconds
        self.ends = self.all_ends - kept * self.longest
        self.all_candidates = max(1, candidates)
        self.candidates = max(1, candidates - kept)
        self.known: set[bytes] = set()
        """The digests of the candidates that were already judged or tried."""
        self.taken: list[_Failing] = []
        """The fault itself, and what each step has made of it."""
        self.must_be_right = validity.is_right(fault.grammar)
        self.is_spent = False

    def run(self) -> Shrunk:
        best = self._start()
        if best is None and self.wanted.message:
            # What it says may depend on the process, as an address does.
            self.wanted = replace(self.wanted, message="")
            self.known.clear()
            best = self._start()
        if best is None:
            return self._result(
                _Failing(Candidate(self.fault.grammar, self.fault.content, None), {}), 0, shown=False
            )
        if not self._agrees():
            called = "valid" if self.fault.valid else "invalid"
            why = f"our judge does not call the instance {called}"
            return replace(self._result(best, 0, shown=True), untried=why, is_minimal=False)
        self.taken.append(best)
        self._search()
        if self.rechecks and (self._went_back_to_a_hang() or self.is_spent):
            # The rechecks are over; each further step must hang as long as they asked for.
            self.deadline, self.ends, self.candidates = self.longest, self.all_ends, self.all_candidates
            self.is_spent = False
            self._search()
        return self._result(self.taken[-1], len(self.taken) - 1, shown=True)

    def _search(self) -> None:
        """Makes rounds until one finds nothing smaller, or the budget is spent."""
        while not self.is_spent:
            before = len(self.taken)
            self._round()
            if len(self.taken) == before:
                break

    def _start(self) -> _Failing | None:
        """Returns the fault itself, with as few tokens as show it: bytes alone, then the run's tokens as
        well, then the run's vocabulary."""
        whole = Candidate(self.fault.grammar, self.fault.content, ())
        for stage in ("bytes", "tokens", "all"):
            candidate = replace(
                whole, words=() if stage == "bytes" else self._words(whole) if stage == "tokens" else None
            )
            began = time.monotonic()
            seconds = self.longest if self.is_hang else self.deadline
            failing = (
                None if candidate.digest in self.known else self._try(candidate, self.fault.valid, seconds)
            )
            self.known.add(candidate.digest)
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

    def _round(self) -> None:
        """Tries every step once, as far as the steps of one candidate are those of the next."""
        begin = 0
        goes_on = True
        while goes_on and not self.is_spent:
            goes_on = False
            best = self.taken[-1].candidate
            for number, step in enumerate(steps(best)):
                if self._has_no_time():  # there may be thousands before the first
                    return
                smaller = None if number < begin else self._smaller(step(), best)
                if smaller is not None:
                    self.taken.append(smaller)
                    # A great step begins anew; after a small one, what comes next stands where it stood.
                    begin = 0 if smaller.candidate.size[0] <= 0.9 * best.size[0] else number
                    goes_on = True
                    break

    def _smaller(self, candidate: Candidate, best: Candidate) -> _Failing | None:
        """Returns the candidate, or one with an instance repaired to go with its grammar, if it is smaller,
        right, and fails alike."""
        if candidate.size >= best.size or candidate.digest in self.known:
            return None
        self.known.add(candidate.digest)
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
        layout = None
        if fault.outcome.verdict == "over_constrained" and fault.grammar.dialect == "json_schema":
            layout = self.bench.layout(Candidate(fault.grammar, fault.content, ()))
        return self.validity.agrees(fault.grammar, fault.content, fault.valid, layout)

    @property
    def _is_judged(self) -> bool:
        """Must a candidate's instance be as valid as the fault's?"""
        return self.fault.outcome.needs_validity or (bool(self.fault.check) and self.fault.valid is not None)

    def _repaired(self, candidate: Candidate) -> _Failing | None:
        tried = 0
        for repaired in repairs(candidate):
            if self._has_no_time() or tried == REPAIRS_TRIED:
                break
            if (
                repaired.digest in self.known
                or self.validity.of(repaired.grammar, repaired.content or b"") != self.fault.valid
            ):
                continue
            self.known.add(repaired.digest)
            tried += 1
            failing = self._try(repaired, self.fault.valid)
            if failing is not None:
                return failing
        if self.is_spent:
            self.known.discard(candidate.digest)  # a later search tries the rest of its repairs
        return None

    def _try(self, candidate: Candidate, valid: bool | None, seconds: float | None = None) -> _Failing | None:
        """Returns the candidate if it fails alike, within these seconds if they are given."""
        seconds = self.deadline if seconds is None else seconds
        if self._has_no_time(seconds):
            self.known.discard(candidate.digest)
            return None
        # Where hanging is the failure, no candidate may be called so for want of time.
        deadline = seconds if self.is_hang else min(seconds, self.ends - time.monotonic())
        answer = self.bench.try_(candidate, valid, deadline)
        return _Failing(candidate, answer) if self._shows(answer, valid) else None

    def _shows(self, answer: dict[str, Any], valid: bool | None) -> bool:
        """Does the answer show what is wanted? An error may say anything where no message is wanted."""
        seen = observed(answer, valid)
        if not self.wanted.message:
            seen = [replace(each, message="") for each in seen]
        return self.wanted in seen

    def _has_no_time(self, seconds: float | None = None) -> bool:
        needed = (self.deadline if seconds is None else seconds) if self.is_hang else 0.0
        self.is_spent = (
            self.is_spent or self.bench.tried >= self.candidates or time.monotonic() + needed >= self.ends
        )
        return self.is_spent

    def _went_back_to_a_hang(self) -> bool:
        """Takes the last steps back until what is left hangs for as long as it must, as the fault itself was
        seen to do; the smallest is tried first, then one half of the way back. Was any taken back?"""
        valid = self.fault.valid if self._is_judged else None
        good, bad = 0, len(self.taken)
        ended: set[bytes] = set()
        number = bad - 1
        while number > good and self._may_recheck():
            candidate = self.taken[number].candidate
            answer = self.bench.try_(candidate, valid, self.longest)
            if self._shows(answer, valid):
                self.taken[number] = _Failing(candidate, answer)
                good = number
            else:
                bad = number
                ended.add(candidate.digest)
            number = (good + bad) // 2
        given_up = self.taken[good + 1 :]
        del self.taken[good + 1 :]
        # Candidates that no recheck tried may hang as long as the fault does: a search may try them again.
        self.known -= {failing.candidate.digest for failing in given_up} - ended
        return bool(given_up)

    def _may_recheck(self) -> bool:
        is_time_left = time.monotonic() + self.longest <= self.all_ends
        return is_time_left and self.bench.tried < self.all_candidates

    def _result(self, best: _Failing, taken: int, shown: bool) -> Shrunk:
        candidate, answer = best.candidate, best.answer
        walk: list[str] | None = answer.get("walk")
        text = answer.get("text", "")
        if self.is_hang and shown and self.longest < self.fault.limit_s:
            text = f"{text}; the run waited {self.fault.limit_s:g} s"
        is_as_valid = self._is_judged or (candidate.grammar, candidate.content) == (
            self.fault.grammar,
            self.fault.content,
        )
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
            valid=self.fault.valid if is_as_valid else None,
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
