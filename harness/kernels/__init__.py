"""Mask application and movement: each backend's own kernels, first right or wrong, then how near they come to a copy's bandwidth."""

from __future__ import annotations

from harness.kernels.plan import DEFAULT as DEFAULT
from harness.kernels.plan import QUICK as QUICK
from harness.kernels.plan import Plan as Plan
from harness.kernels.session import measure as measure
from harness.kernels.stored import read as read
from harness.kernels.table import text as text
