"""Mask application and movement: each backend's own kernels, first right or wrong, then how near they come to
a copy's bandwidth."""

from __future__ import annotations

from harness.measure.kernels.plan import DEFAULT as DEFAULT
from harness.measure.kernels.plan import QUICK as QUICK
from harness.measure.kernels.session import measure as measure
from harness.measure.kernels.stored import read as read
from harness.measure.kernels.table import kernels_text as kernels_text
