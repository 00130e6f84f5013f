"""Describes the machine and the software of a run, collected once."""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Sequence
from glob import glob
from importlib.metadata import distributions
from typing import Any

# What decides about a timing: the rest of an environment's packages does not.
PACKAGES = (
    "torch",
    "numpy",
    "tiktoken",
    "sentencepiece",
    "tokenizers",
    "transformers",
    "mistral-common",
    "jsonschema",
    "triton",
)

# Of what pyperf collects: what describes the machine, and nothing that names its host, its user or a path.
KEYS = (
    "cpu_model_name", "cpu_count", "cpu_affinity", "cpu_config", "cpu_freq", "cpu_temp", "isolated_cpus",
    "aslr",
    "load_avg_1min", "runnable_threads", "platform", "python_implementation", "python_compiler", "timer",
    "perf_version",
)  # fmt: skip


def describe_machine() -> dict[str, Any]:
    """Returns the CPU, system, Python and package versions; nothing that names the host or its user."""
    import pyperf

    try:
        known = pyperf.Run([1.0], collect_metadata=True).get_metadata()
    except ValueError:  # a clock before the start of the machine, which then has run for less than no time
        known = {}
    metadata = {name: str(known[name]) for name in KEYS if name in known}
    versions = {
        distribution.name: distribution.version
        for distribution in distributions()
        if distribution.name in PACKAGES
    }
    return {
        **metadata,
        "python": platform.python_version(),
        "cpus_usable": str(usable_processors()),
        "memory_bytes": str(_memory_bytes()),
        "packages": dict(sorted(versions.items())),
    }


def all_machines(values: Sequence[Any]) -> Any:
    """Returns one description of all machines: where they differ, each text once, joined by ` | `. A value
    may be such a text itself, of rows that were taken over."""
    distinct = [value for place, value in enumerate(values) if value not in values[:place]]
    if len(distinct) == 1:
        return distinct[0]
    if all(isinstance(value, dict) for value in distinct):
        names = dict.fromkeys(name for value in distinct for name in value)
        return {name: all_machines([value.get(name, "") for value in distinct]) for name in names}
    return " | ".join(dict.fromkeys(text for value in distinct for text in str(value).split(" | ")))


def usable_processors() -> int:
    """Returns how many processors this process may run on now."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def hardware() -> dict[str, str]:
    """Returns what two runs must share so that their times can be compared: no frequency, load, host name,
    kernel build or list of flags.

    Of the processor what it calls itself (Linux: vendor, family, model, stepping, name), how many of them
    this process may use and for which share of the time (cgroup quota), whether there is a hypervisor; of a
    GPU its name and the driver's major version.
    """
    cpu: dict[str, str] = {}
    flags = ""
    try:
        with open("/proc/cpuinfo") as file:
            for line in file:
                name, _, value = line.partition(":")
                name = name.strip()
                if name in (
                    "vendor_id",
                    "cpu family",
                    "model",
                    "stepping",
                    "model name",
                    "CPU implementer",
                    "CPU part",
                ):
                    cpu.setdefault(name, value.strip())
                if name == "flags":
                    flags = value
    except OSError:
        cpu["model name"] = platform.processor()
    return {
        "architecture": platform.machine(),
        **cpu,
        "processors": str(usable_processors()),
        "quota": _first_line("/sys/fs/cgroup/cpu.max"),
        "hypervisor": str(" hypervisor" in flags),
        "gpu": _gpu(),
    }


def hardware_key(described: dict[str, str]) -> str:
    """Returns a key of 12 hex digits for the hardware."""
    return hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()[:12]


def _gpu() -> str:
    """Returns the first GPU and its driver's major version; empty if there is none."""
    version = _first_line("/proc/driver/nvidia/version").partition("Kernel Module")[2].split()
    if not version:
        return ""
    names = [_model_in(file) for file in sorted(glob("/proc/driver/nvidia/gpus/*/information"))[:1]]
    return f"{''.join(names)} driver {version[0].partition('.')[0]}"


def _model_in(path: str) -> str:
    try:
        with open(path) as file:
            return next((line.partition(":")[2].strip() for line in file if line.startswith("Model")), "")
    except OSError:
        return ""


def _first_line(path: str) -> str:
    try:
        with open(path) as file:
            return file.readline().strip()
    except OSError:
        return ""


def _memory_bytes() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError):
        return 0
