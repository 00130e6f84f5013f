"""The machine of a run of benchmarks/gpu.py: the device, its driver, the libraries, and which code ran."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

from gpu_plan import KERNEL_BACKENDS

from harness.backend.registry import installed_version, load
from harness.errors import BadInput
from harness.rows.machine import describe_machine

ROOT = Path(__file__).resolve().parents[2]
CODE = ("harness", "adapters", "suites", "benchmarks")

ASK = """
import json, torch
at = torch.cuda.get_device_properties(0) if torch.cuda.is_available() else None
print(json.dumps({
    "device": at.name if at else "cpu",
    "memory_bytes": at.total_memory if at else None,
    "multiprocessors": at.multi_processor_count if at else None,
    "capability": f"{at.major}.{at.minor}" if at else None,
    "torch": torch.__version__,
    "cuda": torch.version.cuda,
}))
"""
"""What a process of its own is asked, so that this one holds nothing of the device."""


def device_here() -> str:
    """Returns `cuda` where torch finds a GPU, else `cpu`. Raises BadInput without torch."""
    return "cpu" if asked_torch()["device"] == "cpu" else "cuda"


@cache
def asked_torch() -> dict[str, Any]:
    """Returns what torch says of itself and the device. Raises BadInput if torch cannot be imported."""
    done = subprocess.run([sys.executable, "-c", ASK], capture_output=True, text=True)
    if done.returncode:
        why = (done.stderr.strip().splitlines() or ["no reason"])[-1]
        raise BadInput(f"torch cannot be used in {sys.executable}: {why}")
    known: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return known


@cache
def environment(device: str) -> dict[str, Any]:
    """Returns the device (the processor's name on a CPU), driver, versions, machine and code of this run."""
    machine = describe_machine()
    known = dict(asked_torch())
    if device == "cpu":
        known["device"] = f"cpu: {machine.get('cpu_model_name', '')}"
    return known | {
        "driver": output(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"])
        if device == "cuda"
        else "",
        "clocks": output(
            ["nvidia-smi", "--query-gpu=clocks.max.sm,clocks.max.mem,power.limit", "--format=csv,noheader"]
        )
        if device == "cuda"
        else "",
        "versions": {name: version_of(name) for name in KERNEL_BACKENDS},
        "packages": {name: installed_version(name) or "" for name in ("transformers", "triton", "numpy")},
        "commit": output(["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=12"]),
        "code_sha256": code_hash(),
        "machine": machine,
    }


def version_of(backend: str) -> str:
    """Returns the version of the backend's library; empty if it is not installed."""
    try:
        return installed_version(load(backend).distribution) or ""
    except BadInput:
        return ""


def check_backend(backend: str) -> None:
    """Raises BadInput, with the reason, if the backend's library cannot be imported or has no version: its
    figures would be of a version that nobody knows, and the folder could not be gone on with."""
    if not installed_version(load(backend).distribution):
        raise BadInput(f'the library of backend "{backend}" has no version here; install it anew')


def code_hash() -> str:
    """Returns the hash of the code's files, by name and content: what ran, also where there is no git."""
    digest = hashlib.sha256()
    for folder in CODE:
        for path in sorted(path for path in (ROOT / folder).rglob("*") if path.suffix in (".py", ".jsonl")):
            digest.update(f"{path.relative_to(ROOT).as_posix()}\0".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()


def output(command: list[str]) -> str:
    """Returns the command's output on one line; empty where it fails or is not there."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return "; ".join(done.stdout.split("\n")).strip("; ") if done.returncode == 0 else ""
