"""Runs on disk that no backend made: for the tests of all that reads runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from harness.backend.arm import Arm
from harness.backend.grammar import Grammar
from harness.cases.case import Case, Instance, case_id
from harness.cases.case_line import case_to_line
from harness.rows.row import Finding, Row, RunInfo
from harness.rows.writer import Writer

Walk = tuple[Row, bytes]

HOSTILE = (
    "</script><script>alert(1)</script>",
    '<img src=x onerror="alert(2)">',
    "'\"><svg/onload=alert(3)>",
    "{{ 7*7 }}{% raw %}",
    "</details></table><!-- ]]>",
    "bell \x07 null \x00 escape \x1b[31m del \x7f c1 \x9b",
    "line\u2028paragraph\u2029rtl\u202eevil\u2066",
    "lone \ud800 surrogate \udfff",
    "=cmd|' /C calc'!A0, \"quoted\"\nsecond line\r\nthird | pipe",
    "../../../etc/passwd",
)

ARMS = (
    Arm("alpha", "1.2.3", "", "alpha", ("json_schema", "regex"), "bitmask"),
    Arm("beta", "0.4", "any_whitespace=false", "beta-core", ("json_schema",), "bitmask"),
    Arm("gamma", "7.0.0rc1", "", "gamma", ("json_schema", "ebnf"), "bool"),
    Arm("delta", "2.0", "", "delta", ("json_schema",), "bitmask"),
)


def ns(*values: int) -> bytes:
    """Samples as a worker sends them: fill, accept, fill, accept, ..."""
    return np.array(values, "<i8").tobytes()


def row(**fields: Any) -> Row:
    """Returns a row of a walk that went well, but for what is named."""
    defaults: dict[str, Any] = {
        "backend": "alpha", "backend_version": "1.2.3", "options": "", "vocabulary": "tiny", "suite": "first",
        "suite_version": "1",
        "case": "a case", "case_id": f"{0:012x}", "dialect": "json_schema", "tags": (), "instance": 0,
        "instance_name": "test 1",
        "mode": "replay", "jump_forward": False, "repeat": 0, "status": "ok", "phase": "", "signal": "",
        "text": "", "valid": True,
        "accepted": True, "stopped_at": None, "tokens": 3, "bytes": 9, "grammar_bytes": 20,
        "compile_ns": 1_000_000,
        "matcher_new_ns": 2_000, "first_fill_ns": 3_000, "wall_ns": 5_000_000, "peak_rss_bytes": 100_000_000,
        "samples": None,
    }  # fmt: skip
    return Row(**(defaults | fields))


VOCABULARY = {"size": 300, "sha256": "ab" * 32}


def info(arms: Iterable[Arm] = ARMS, **fields: Any) -> RunInfo:
    """Returns the header of a run on one machine that does not exist."""
    defaults: dict[str, Any] = {
        "run": "20261121T0900Z-4f2a", "started": "2026-11-21T09:00:00Z", "harness": "0.1.0",
        "argv": ("grammarbench", "run", "--backends", "alpha,beta"), "seed": 0, "profile": "default",
        "timeout_s": 10.0,
        "memory_bytes": 4 << 30, "jobs": 2, "arms": tuple(arms), "vocabularies": {"tiny": VOCABULARY},
        "suites": {"first": {"version": "1", "sha256": "cd" * 32, "cases": 3, "instances": 6}},
        "machine": {"cpu": "Imaginary 9000", "logical_cpus": 2, "memory_bytes": 8 << 30,
        "packages": {"numpy": "2.3.5"}},
    }  # fmt: skip
    return RunInfo(**(defaults | fields))


def arms_of(rows: Iterable[Row]) -> list[Arm]:
    """Returns the arms that a run with these rows must have, each once."""
    keys = dict.fromkeys(row.version_key for row in rows)
    return [Arm(*key, key[0], ("json_schema",), "bitmask") for key in keys]


def write_run(
    folder: Path,
    groups: Iterable[Sequence[Walk]],
    header: RunInfo | None = None,
    cases: Iterable[tuple[str, Case]] = (),
    complete: bool = True,
) -> Path:
    """Writes the walks, each group (one case on one arm) at once; without `complete` the run has no end. The
    run is on the vocabularies of its rows where its header has not all of them."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cases.jsonl").write_bytes(b"".join(case_to_line(suite, "1", case) for suite, case in cases))
    groups = list(groups)
    header = header or info()
    there = dict.fromkeys(row.vocabulary for group in groups for row, _ in group)
    if not there.keys() <= header.vocabularies.keys():
        of_rows = {name: header.vocabularies.get(name, VOCABULARY) for name in there}
        header = replace(header, vocabularies=of_rows)
    with Writer(folder, header) as writer:
        for group in groups:
            writer.append(group)
        if complete:
            writer.finish("2026-11-21T09:10:00Z")
    return folder


def slow_and_quick(folder: Path, walks: Iterable[dict[str, Any]]) -> Path:
    """Returns a run of two arms, of each of which the walks are told by some fields. Their rows come as they
    are done, those of the second arm, `quick`, first."""
    arms = [Arm(name, "1", "", "", ("json_schema",), "bitmask") for name in ("slow", "quick")]
    fields = list(walks)
    groups = [
        [(row(backend=arm.backend, backend_version="1", **each), b"") for each in fields]
        for arm in reversed(arms)
    ]
    return write_run(folder, groups, info(arms))


def case(
    number: int,
    instances: Sequence[tuple[str, bytes, bool | None]],
    name: str = "",
    schema: str = "",
    tags: Sequence[str] = (),
) -> Case:
    """Returns a case whose id follows from its number or schema."""
    grammar = Grammar("json_schema", schema or f'{{"type": "string", "maxLength": {number}}}')
    return Case(
        case_id(grammar),
        name or f"case {number}",
        grammar,
        tuple(Instance(*instance) for instance in instances),
        tuple(tags),
    )


def synthetic_run(
    folder: Path,
    cases: int = 24,
    arms: Sequence[Arm] = ARMS,
    seed: int = 0,
    hostile: bool = True,
    complete: bool = True,
) -> Path:
    """Returns a run in which most goes well and everything that can go wrong does, seeded; with `hostile`,
    its strings attack their reader."""
    random = np.random.default_rng(seed)
    suites = ("json_schema", "regex", "utf8")
    tags = ("type", "pattern", "$ref", "format", "minLength", "anyOf")
    made: list[tuple[str, Case]] = []
    groups: list[list[Walk]] = []
    for number in range(cases):
        evil = HOSTILE[number % len(HOSTILE)] if hostile else ""
        instances = [
            (f"{evil} instance {which}", f'"{number} {evil}"'.encode("utf-8", "replace"), bool(which % 2))
            for which in range(3)
        ]
        schema = f'{{"const": "{number} {evil}"}}' + ("[" * 10_000 if hostile and number == 1 else "")
        kinds = [tags[number % 6], tags[(number // 6 + 3) % 6], *([evil] if evil else [])]
        made_case = case(number, instances, f"{evil} case {number}", schema, kinds)
        suite = suites[number % 3]
        made.append((suite, made_case))
        groups += [_walks(random, position, arm, suite, made_case, evil) for position, arm in enumerate(arms)]
    suites_of_run = {
        name: {"version": "1", "sha256": "00", "cases": cases // 3, "instances": cases} for name in suites
    }
    machine = info().machine | ({"hostname": HOSTILE[0], "note": {"nested": [HOSTILE[1]]}} if hostile else {})
    return write_run(folder, groups, info(arms, suites=suites_of_run, machine=machine), made, complete)


def _walks(
    random: np.random.Generator, position: int, arm: Arm, suite: str, case: Case, evil: str
) -> list[Walk]:
    fate = random.random() + 0.03 * position
    common: dict[str, Any] = {
        "backend": arm.backend, "backend_version": arm.version, "options": arm.options, "suite": suite,
        "case": case.name,
        "case_id": case.id, "tags": case.tags, "compile_ns": int(random.lognormal(13 + position, 1.5)),
    }  # fmt: skip
    nothing = {"accepted": None, "matcher_new_ns": None, "first_fill_ns": None}
    walks: list[Walk] = []
    for number, instance in enumerate(case.instances):
        fields = common | {
            "instance": number,
            "instance_name": instance.name,
            "valid": instance.valid,
            "accepted": instance.valid,
        }
        fills = random.lognormal(9 + 0.6 * position, 1.1, 12).astype(np.int64)
        accepts = random.lognormal(7.5, 0.5, 12).astype(np.int64)
        samples = np.stack([fills, accepts], 1).tobytes()
        fields |= {
            "tokens": 11,
            "matcher_new_ns": 4_000,
            "first_fill_ns": int(fills[0]),
            "stopped_at": None if instance.valid else 5,
        }
        if fate > 0.99:
            fields |= {
                "status": "timeout",
                "phase": "compile",
                "text": "killed after 10 s",
                "compile_ns": None,
            } | nothing
        elif fate > 0.97:
            fields |= {
                "status": "crash",
                "phase": "fill",
                "signal": "SIGSEGV",
                "text": f"the process died {evil}",
                "accepted": None,
            }
        elif fate > 0.9:
            fields |= {
                "status": "unsupported",
                "phase": "compile",
                "text": f"keyword {case.tags[0]!r} is not supported {evil}",
            } | nothing
        elif fate > 0.86 and number == 1:
            fields |= {"accepted": False, "stopped_at": 11 if position % 2 else 4}
        elif fate > 0.82 and number == 2:
            fields |= {"accepted": True, "stopped_at": None, "valid": False}
        elif fate > 0.8 and number == 0:
            fields |= {
                "status": "backend_error",
                "phase": "accept",
                "text": f"RuntimeError: {evil}",
                "accepted": None,
            }
        elif 0.79 < fate <= 0.8:
            fields |= {"status": "harness_error", "phase": "walk", "text": "our fault"} | nothing
        elif 0.76 < fate <= 0.79 and number == 0:
            fields |= {
                "findings": (Finding("mask_agrees_with_accept", 3, f"token 17 allowed, refused {evil}"),)
            }
        walks.append(
            (
                row(**fields),
                b"" if fields.get("status", "ok") in ("timeout", "unsupported", "harness_error") else samples,
            )
        )
    return walks
