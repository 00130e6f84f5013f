"""The subjects of the comparison: the backends' own kernels, and plain torch operations that belong to no
backend."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from harness.backend.grammar import Kernel
from harness.backend.process.child import Page
from harness.backend.registry import BackendSpec, installed_version, load, make, names, parse_specs
from harness.backend.vocabulary import byte_vocabulary
from harness.errors import BadInput, error_text
from harness.measure.kernels.masks import Form
from harness.measure.kernels.situations import DTYPES
from harness.text import one_line

if TYPE_CHECKING:
    import torch

PLAIN = "plain"
"""The name that plain operations have in the place of a backend's."""

AT = 1
"""The cell of the page with the number of the backend that is loaded at the time, from 1; 0 where none is."""

EVERYWHERE = frozenset({"cpu", "cuda"})


@dataclass(frozen=True)
class KernelSubject:
    """A kernel, and the form of mask that it reads."""

    kernel: Kernel
    form: Form = "packed"


def masked_fill(logits: torch.Tensor, forbidden: torch.Tensor) -> object:
    """Writes -inf where the mask, with one byte a token, forbids."""
    return logits.masked_fill_(forbidden, float("-inf"))


def fill_forbidden_ids(logits: torch.Tensor, ids: torch.Tensor) -> object:
    """Writes -inf at each forbidden id."""
    return logits.view(-1).index_fill_(0, ids, float("-inf"))


def keep_allowed_ids(logits: torch.Tensor, ids: torch.Tensor) -> object:
    """Keeps the allowed values, writes -inf everywhere, and puts them back."""
    flat = logits.view(-1)
    kept = flat[ids]
    flat.fill_(float("-inf"))
    return flat.index_copy_(0, ids, kept)


def plain_subjects() -> dict[str, KernelSubject]:
    """Returns the plain subjects by name. They are compared with `masked_fill` where they are timed; only the
    backends' kernels are probed."""
    functions: dict[Form, Callable[..., object]] = {
        "bool": masked_fill,
        "forbidden_ids": fill_forbidden_ids,
        "allowed_ids": keep_allowed_ids,
    }
    return {f"{PLAIN}/{function.__name__}": _plain(function, form) for form, function in functions.items()}


def _plain(function: Callable[..., object], form: Form) -> KernelSubject:
    return KernelSubject(Kernel(lambda: function, EVERYWHERE, frozenset(DTYPES)), form)


@dataclass(frozen=True)
class KernelsFound:
    """The subjects and backends of this environment."""

    subjects: Mapping[str, KernelSubject]
    """The subjects by name, `backend/kernel`, with the plain ones last."""
    backends: Sequence[dict[str, Any]] = field(default_factory=list)
    """For each backend `backend`, `version`, and `problem` if it cannot be used."""


def _problem(spec: BackendSpec, error: BaseException) -> BadInput:
    """Returns why a backend cannot be had, with its name."""
    if isinstance(error, BadInput):
        return error
    text = str(error) if isinstance(error, ValueError) else error_text(error, 300)
    return BadInput(f'backend "{spec}": {one_line(text)}')


def wanted(specs: str | None) -> tuple[BackendSpec, ...]:
    """Returns these backends, or all that are installed. Raises BadInput."""
    return tuple(parse_specs(specs if specs is not None else ",".join(names())))


def find_subjects(specs: str | None, page: Page | None = None) -> KernelsFound:
    """Returns the subjects of these backends, or of all that are installed; one of those that raises has a
    problem. The cell AT of the page says which is at work. Raises BadInput for one that is named and cannot
    be had."""
    subjects: dict[str, KernelSubject] = {}
    backends: list[dict[str, Any]] = []
    for number, spec in enumerate(wanted(specs), 1):
        if page is not None:
            page[AT] = number
        entry: dict[str, Any] = {"backend": spec.name, "version": "", "problem": ""}
        try:
            entry["version"] = installed_version(load(spec.name).distribution) or ""
            kernels = make(spec, byte_vocabulary()).kernels()
        except BaseException as error:  # a panic in Rust and a backend's sys.exit() are no Exception
            problem = _problem(spec, error)
            if specs is not None:
                raise problem from error
            entry["problem"] = str(problem)
            kernels = {}
        subjects |= {f"{spec.name}/{name}": KernelSubject(kernel) for name, kernel in kernels.items()}
        backends.append(entry)
    if page is not None:
        page[AT] = 0
    return KernelsFound(subjects | plain_subjects(), backends)
