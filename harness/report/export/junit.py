"""JUnit XML, as Jenkins, GitLab and GitHub's reporters read it: a test suite per arm and suite, a test case
per failed or refused case.

The cases that work are one test case with their number, so that 10,000 of them do not fill a page; so are
those that were not judged or not measured, as skipped ones. A refused case is skipped.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree as xml

from harness.outcomes import delayed
from harness.outcomes.gate import NO_BASE
from harness.outcomes.result import Arm, Failing, Result
from harness.outcomes.result.parts import Counts
from harness.report.export.csv_table import COUNTED
from harness.text import counted, one_line

MOST_TOLD = 200
"""Cases without a failure that a test suite's output tells of at most, of each kind."""

LISTED = ("failed", "refused")
"""The outcomes of cases that have a test case of their own."""

NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def files(result: Result) -> dict[str, str]:
    """Returns `junit.xml`: a test suite for each arm and suite, and one for the gate."""
    root = xml.Element(
        "testsuites", name=_fit(f"grammarbench {result.run}{f', {result.part}' if result.part else ''}")
    )
    tests = failures = skipped = 0
    failing: dict[tuple[str, str], list[Failing]] = {}
    for failing_case in result.failing:
        failing.setdefault((failing_case.arm, failing_case.suite), []).append(failing_case)
    arms = {arm.name: arm for arm in result.arms}
    for count in result.counts:
        suite = _suite(result, arms[count.arm], count, failing.get((count.arm, count.suite), []))
        root.append(suite)
        tests, failures, skipped = (
            total + int(suite.get(name, "0"))
            for total, name in ((tests, "tests"), (failures, "failures"), (skipped, "skipped"))
        )
    gate = _gate(result)
    root.append(gate)
    failures += int(gate.get("failures", "0"))
    skipped += int(gate.get("skipped", "0"))
    for name, value in (("tests", tests + 1), ("failures", failures), ("errors", 0), ("skipped", skipped)):
        root.set(name, str(value))
    xml.indent(root)
    return {
        "junit.xml": '<?xml version="1.0" encoding="UTF-8"?>\n'
        + xml.tostring(root, encoding="unicode")
        + "\n"
    }


def _suite(result: Result, arm: Arm, count: Counts, mine: list[Failing]) -> xml.Element:
    listed = [failing_case for failing_case in mine if failing_case.outcome in LISTED]
    documented = [failing_case for failing_case in mine if failing_case.outcome not in LISTED]
    silent = [
        (count.not_judged, "not judged: no instance with a known verdict"),
        (count.not_measured, "not measured: a part is missing through our fault"),
    ]
    skipped = [(number, why) for number, why in silent if number]
    name = f"{count.suite} {count.arm}"
    suite = xml.Element(
        "testsuite",
        name=_fit(name),
        tests=str(len(listed) + len(skipped) + 1),
        failures=str(count.failed),
        errors="0",
        skipped=str(len(listed) - count.failed + len(skipped)),
        timestamp=_fit(result.started[:19]),
        hostname="",
    )
    properties = xml.SubElement(suite, "properties")
    for key, value in _properties(result, arm, count).items():
        xml.SubElement(properties, "property", name=_fit(key), value=_fit(value))
    xml.SubElement(suite, "testcase", classname=_fit(name), name=f"works: {counted(count.works, 'case')}")
    for number, why in skipped:
        case = xml.SubElement(
            suite,
            "testcase",
            classname=_fit(name),
            name=f"{why.partition(':')[0]}: {counted(number, 'case')}",
        )
        xml.SubElement(case, "skipped", message=why)
    for failing_case in listed:
        _add_case(suite, name, failing_case)
    if notes := _notes(result, count, documented):
        xml.SubElement(suite, "system-out").text = "\n".join(notes)
    return suite


def _properties(result: Result, arm: Arm, count: Counts) -> dict[str, str]:
    """Returns the figures of the arm, who it is, and how many cases of the suite came to what. The name of a
    figure that is of all suites begins with `all_suites_`."""
    figures = {
        f"{'all_suites_' if figure.family == 'all' else ''}{figure.name}": repr(figure.value)
        for figure in result.figures
        if figure.arm == count.arm and figure.family in ("all", count.suite)
    }
    who = {name: getattr(arm, name) for name in ("backend", "version", "options", "vocabulary")}
    counts = {name: str(getattr(count, name)) for name in COUNTED}
    conformance = {"conformance": "" if count.conformance is None else repr(count.conformance)}
    return figures | who | counts | conformance | ({"sample": result.sample} if result.sample else {})


def _add_case(suite: xml.Element, name: str, failing: Failing) -> None:
    """Adds a case that failed, or that the backend refused, which is skipped."""
    title = _fit(f"{failing.case} [{failing.case_id}]")
    case = xml.SubElement(suite, "testcase", classname=_fit(name), name=title)
    faults = ", ".join(fault for fault in failing.faults if fault not in failing.documented)
    message = _fit(f"{faults}: {failing.said}" if failing.said else faults)
    if failing.outcome != "failed":
        xml.SubElement(
            case, "skipped", message=_fit(f"refused: {failing.said}" if failing.said else "refused")
        )
    else:
        failure = xml.SubElement(case, "failure", message=message, type=failing.state)
        failure.text = _fit(failing.repro, 2000)


def _notes(result: Result, count: Counts, documented: list[Failing]) -> list[str]:
    """Returns lines about documented faults, which are no failures, and what failed behind others only."""
    documented_lines = [
        _fit(f"{failing_case.case} [{failing_case.case_id}]: {', '.join(failing_case.faults)}")
        for failing_case in documented[:MOST_TOLD]
    ]
    why = "no failures, for the backend documents them or they are policy:"
    lines = [why, *documented_lines] if documented_lines else []
    later = [case for case in result.delayed if (case.arm, case.suite) == (count.arm, count.suite)]
    lines += map(_fit, delayed.lines(later))
    return [*lines, *(_fit(delayed.in_words(case), 2000) for case in later[:MOST_TOLD])]


def _gate(result: Result) -> xml.Element:
    """Returns the gate as a test of its own; a run that is incomplete or unproven fails it, and where there
    is nothing to compare the run with it is skipped: a passed test would say that it held."""
    failed, skipped = result.gate.verdict != "ok", result.gate.has_no_base
    suite = xml.Element(
        "testsuite", name="gate", tests="1", failures=str(int(failed)), errors="0", skipped=str(int(skipped))
    )
    case = xml.SubElement(
        suite, "testcase", classname="gate", name=_fit(f"against {result.gate.against or 'nothing'}")
    )
    if skipped:
        xml.SubElement(case, "skipped", message=NO_BASE)
    if failed:
        failure = xml.SubElement(
            case, "failure", message=_fit("; ".join(result.gate.reasons)), type=result.gate.verdict
        )
        failure.text = "\n".join(
            _fit(f"{change.kind} {change.arm}: {change.what}", 2000) for change in result.changes[:200]
        )
    return suite


def _fit(text: str, longest: int = 500) -> str:
    return NOT_XML.sub("\ufffd", one_line(text, longest, spelled=True))
