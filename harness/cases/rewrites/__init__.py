"""Schemas written in another way that ask the same: for a backend that fails at the way in which they are
written now. A function of `transformations` is one way; it may be optimistic, since each rewrite is proven by
the reference automaton before it is offered."""

from __future__ import annotations

from harness.cases.rewrites.rewriter import Rewriter as Rewriter
from harness.cases.rewrites.rewriter import Rewritten as Rewritten
