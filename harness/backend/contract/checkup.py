"""The contract checklist against one backend, in a process of its own: a check that hangs or crashes costs
that check."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from harness.backend import contract  # a name `check_...` of this module itself would count as a check
from harness.backend.contract import CheckResult
from harness.backend.contract.spellings import SPELLINGS, Kept, kept
from harness.backend.declared import adapter_of
from harness.backend.describe import refuse_lost_vocabularies
from harness.backend.loading import at_work
from harness.backend.process.child import Answer, Handler, Page
from harness.backend.process.lost import Lost
from harness.backend.process.service import Service
from harness.errors import BadInput


def run_checks(spec: str, vocabulary: str, timeout_s: float, python: str) -> Iterator[CheckResult]:
    """Yields one result per check, in order; `timeout_s` is for the loading and for each check.

    Raises BadInput if the backend or the vocabulary is not to be had.
    """
    with _service(spec, vocabulary, timeout_s, python) as service:
        try:
            service.wait()
        except Lost as lost:
            refuse_lost_vocabularies([vocabulary], python)
            yield _lost("load", lost)
            return
        for number, name in enumerate(service.description["names"]):
            try:
                result, _ = service.ask({"check": number}, seconds=timeout_s)
            except Lost as lost:
                yield _lost(name, lost)
            else:
                yield CheckResult(**result)


def _lost(name: str, lost: Lost) -> CheckResult:
    return CheckResult(name, "timeout" if lost.cause == "timeout" else "error", contract.cut(str(lost)))


def spellings_kept(spec: str, vocabulary: str, timeout_s: float, python: str) -> Iterator[Kept]:
    """Yields what the backend does with each spelling of JSON that tells layouts apart; `timeout_s` is for
    the loading and for each of them.

    Raises BadInput if the backend or the vocabulary is not to be had, or the backend is lost as it loads.
    """
    with _service(spec, vocabulary, timeout_s, python) as service:
        try:
            service.wait()
        except Lost as lost:
            refuse_lost_vocabularies([vocabulary], python)
            raise BadInput(f"{spec}: {lost}") from lost
        for number, spelling in enumerate(SPELLINGS):
            try:
                result, _ = service.ask({"spelling": number}, seconds=timeout_s)
            except Lost as lost:
                yield Kept(spelling.name, spelling.text, None, None, str(lost))
            else:
                yield Kept(**result)


def _service(spec: str, vocabulary: str, timeout_s: float, python: str) -> Service:
    loader = f"{__name__}:{open_checks.__name__}"
    arguments = {"spec": spec, "vocabulary": vocabulary}
    return Service(loader, arguments, python=python, load_seconds=timeout_s, tells_load=True)


def open_checks(spec: str, vocabulary: str, page: Page | None = None) -> tuple[Handler, dict[str, Any]]:
    """Returns the handler that runs the check of a number or tries the spelling of a number, and the names of
    all checks. Raises BadInput."""
    with at_work(page):  # the vocabulary too: one that is lost is looked for by the client
        adapter = adapter_of(spec, vocabulary)
    checks = contract.checks()

    def run_one(question: dict[str, Any], blob: bytes) -> Answer:
        if "spelling" in question:
            return vars(kept(adapter, SPELLINGS[question["spelling"]])), b""
        (result,) = contract.check_adapter(adapter, [checks[question["check"]]])
        return vars(result), b""

    return run_one, {"names": [contract.check_name(check) for check in checks]}
