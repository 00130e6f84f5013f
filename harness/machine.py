"""The machine and the software of a run, collected once."""

from __future__ import annotations

import os
import platform
from importlib.metadata import distributions
from typing import Any

# What decides about a timing: the rest of an environment's packages does not.
PACKAGES = ("torch", "numpy", "tiktoken", "sentencepiece", "tokenizers", "transformers", "mistral-common", "jsonschema", "triton")

# Of what pyperf collects: what describes the machine, and nothing that names its host, its user or a path.
KEYS = (
    "cpu_model_name", "cpu_count", "cpu_affinity", "cpu_config", "cpu_freq", "cpu_temp", "isolated_cpus", "aslr",
    "load_avg_1min", "runnable_threads", "platform", "python_implementation", "python_compiler", "timer", "perf_version",
)  # fmt: skip


def describe_machine() -> dict[str, Any]:
    """CPU, system, Python and package versions; nothing that names the host or its user."""
    import pyperf

    known = pyperf.Run([1.0], collect_metadata=True).get_metadata()
    found = {name: str(known[name]) for name in KEYS if name in known}
    versions = {each.name: each.version for each in distributions() if each.name in PACKAGES}
    return {
        **found,
        "python": platform.python_version(),
        "cpus_usable": str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()),
        "memory_bytes": str(_memory_bytes()),
        "packages": dict(sorted(versions.items())),
    }


def _memory_bytes() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError):
        return 0
