"""The file of one part: what was measured, on what, with which commands. It is replaced in one piece after
each cell, so that it is complete at any time."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpu_machine import environment
from gpu_plan import FORMAT, PARTS, SAME, Plan, plan_of

from harness.errors import BadInput
from harness.rows.folder import now
from harness.whole_files import write_whole


@dataclass(eq=False)
class Store:
    """One part's file."""

    path: Path
    part: str
    device: str
    """`cuda` or `cpu`."""
    environment: dict[str, Any]
    """The device, versions and code of the first call; the code of later calls is with their commands."""
    commands: list[dict[str, Any]] = field(default_factory=list)
    cells: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def plan(self) -> Plan:
        """Returns the plan of the store's device."""
        return plan_of(self.device)

    def add(self, name: str, result: dict[str, Any]) -> bool:
        """Keeps the result of a cell and writes the file; returns whether it was kept. What holds less does
        not replace what holds more: a failure replaces no part, and a part no whole. A part that does not
        say how long it took has the time of the one that it replaces, by which the next try is planned."""
        known = self.cells.get(name)
        kept = known is None or worth(result) >= worth(known)
        if kept:
            self.cells[name] = result
            if known and "seconds" in known and not whole(result):
                result.setdefault("seconds", known["seconds"])
        elif known is not None and not whole(known):  # it took longer than was known
            known["seconds"] = max(known.get("seconds", 0.0), result.get("seconds", 0.0))
        self.save()
        return kept

    def save(self) -> None:
        """Replaces the file in one piece."""
        value = {
            "format": FORMAT,
            "part": self.part,
            "device": self.device,
            "environment": self.environment,
            "commands": self.commands,
            "cells": self.cells,
        }
        write_whole(self.path, json.dumps(value, indent=1) + "\n")

    def missing(self) -> list[str]:
        """Returns the names of the cells that have no whole result."""
        return [
            cell.name
            for cell in self.plan.cells(self.part)
            if cell.name not in self.cells or not whole(self.cells[cell.name])
        ]

    def results(self) -> dict[str, dict[str, Any]]:
        """Returns the cells that have a result, whole or a part."""
        return {name: result for name, result in self.cells.items() if not failed(result)}


def failed(result: dict[str, Any]) -> bool:
    """Returns whether the cell came to nothing."""
    return "error" in result


def whole(result: dict[str, Any]) -> bool:
    """Returns whether all of the cell was measured. Of a part, `partial` says why it is no more."""
    return not failed(result) and "partial" not in result


def worth(result: dict[str, Any]) -> tuple[int, int]:
    """Returns what results of a cell are ranked by: nothing, parts by how much they hold, and a whole."""
    return (0, 0) if failed(result) else (2, 0) if whole(result) else (1, held(result))


def held(result: dict[str, Any]) -> int:
    """Returns how much the result holds: rows of `decode`, runs of `cold` and `share`, the floor's batches,
    or times and probes of kernels."""
    probes = sum(sum(outcomes.values()) for outcomes in result.get("probed", {}).values())
    return max(probes, *(len(result.get(name, ())) for name in ("rows", "runs", "steps", "times")))


def opened(path: Path, part: str, device: str, argv: Sequence[str]) -> Store:
    """Returns the file's content, or a new one, with this call among its commands."""
    here = environment(device)
    command = {"argv": list(argv), "at": now(), "commit": here["commit"], "code_sha256": here["code_sha256"]}
    if not path.exists():
        return Store(path, part, device, here, [command])
    store = read(path)
    store.commands.append(command)
    return store


def refuse_another(out: Path, device: str) -> None:
    """Raises BadInput if the folder holds a part of another device than this one, or of other versions."""
    here = environment(device)
    for store in stored(out).values():
        _refuse_different(store, device, here, "here")


def _refuse_different(store: Store, device: str, beside: dict[str, Any], where: str) -> None:
    for name, different in SAME.items():
        known, other = store.environment.get(name), beside.get(name)
        if known != other or store.device != device:
            raise BadInput(f"{store.path} is of {different} ({known}, {where} {other}); give another --out")


def read(path: Path) -> Store:
    """Returns the file's content. Raises BadInput if it is no file of ours."""
    try:
        value = json.loads(path.read_text("utf-8"))
        if value["format"] != FORMAT or value["part"] not in PARTS:
            raise ValueError("another format")
        return Store(
            path, value["part"], value["device"], value["environment"], value["commands"], value["cells"]
        )
    except (ValueError, KeyError, TypeError) as error:
        raise BadInput(f"{path} is no file of benchmarks/gpu.py ({error!r}); give another --out") from error


def stored(out: Path) -> dict[str, Store]:
    """Returns the parts that the folder holds, by name. Raises BadInput if not all are of one device and of
    the same versions: the page names those of the first part for all of them."""
    stores = {part: read(out / f"{part}.json") for part in PARTS if (out / f"{part}.json").exists()}
    for store in stores.values():
        first = next(iter(stores.values()))
        _refuse_different(store, first.device, first.environment, f"in {first.path.name}")
    return stores


def middle(values: Iterable[float | None]) -> float | None:
    """Returns the median of what is known; None of nothing."""
    known: Sequence[float] = [value for value in values if value is not None]
    return statistics.median(known) if known else None
