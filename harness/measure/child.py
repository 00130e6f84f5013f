"""What the children of measurements share, whether they measure one case or how cost grows."""

from __future__ import annotations

import os
from dataclasses import replace

from harness.backend.grammar import Adapter
from harness.backend.options import option_table
from harness.backend.process.fork import peak_rss
from harness.backend.process.system import rss_bytes
from harness.backend.registry import BackendSpec, make


def resident_bytes() -> int:
    """Returns the resident memory of this process, or its peak where the system does not tell the present
    one."""
    return rss_bytes(os.getpid()) or peak_rss()


def with_option(adapter: Adapter, spec: BackendSpec, option: str, value: str) -> Adapter | None:
    """Returns another adapter of the same backend with one option more; None where it has no such option, or
    where `spec` sets it itself."""
    offered = {one.name for one in option_table(type(adapter))}
    if option not in offered or option in dict(spec.options):
        return None
    options = tuple(sorted((*spec.options, (option, value))))
    return make(replace(spec, options=options), adapter.vocabulary)
