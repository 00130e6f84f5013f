"""What memory there is to be had for this process and those below it, and how often the kernel has killed one
of them because it had none left (Linux)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from harness.backend.process.system import proc_content

CGROUPS = "/sys/fs/cgroup"
"""Where the groups of processes are shown, whose memory may have a limit of its own."""


def kills_for_memory() -> int:
    """Returns how many processes the kernel has killed so far for lack of memory: in the group of this
    process, or on the machine where the group does not tell; 0 where nothing does."""
    for folder in _groups():
        for name in ("memory.events", "memory.oom_control"):
            if (count := _number(folder / name, "oom_kill")) is not None:
                return count
    return _number(Path("/proc/vmstat"), "oom_kill") or 0


def memory_to_be_had() -> int:
    """Returns how many bytes of memory the machine has, or the least that a group of this process may take if
    that is less; 0 where the system does not tell."""
    limits = [_of_machine()]
    for folder in _groups():
        for name in ("memory.max", "memory.limit_in_bytes"):
            with suppress(OSError, ValueError):  # `max` is no limit
                limits.append(int(proc_content(str(folder / name))))
    return min((limit for limit in limits if limit > 0), default=0)


def _of_machine() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 0


def _groups() -> Iterator[Path]:
    """Yields the folders of this process's groups that count memory, from its own upwards."""
    try:
        lines = proc_content("/proc/self/cgroup").decode().splitlines()
    except OSError:
        return
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers in ("", "memory"):
            root = Path(CGROUPS, controllers)
            own = root / path.lstrip("/")
            while True:
                yield own
                if own == root or root not in own.parents:
                    break
                own = own.parent


def _number(path: Path, name: str) -> int | None:
    """Returns the number behind this name in a file of names and numbers; None where there is none."""
    try:
        for line in proc_content(str(path)).splitlines():
            word, _, value = line.partition(b" ")
            if word == name.encode():
                return int(value)
    except (OSError, ValueError):
        pass
    return None
