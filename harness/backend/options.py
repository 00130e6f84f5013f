"""The options of an adapter, which are the keyword-only parameters of its `__init__`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

from harness.errors import BadInput, did_you_mean

if TYPE_CHECKING:
    from harness.backend.grammar import Adapter


@dataclass(frozen=True)
class Option:
    """A keyword-only parameter of an adapter."""

    name: str
    kind: Literal["bool", "int", "str", "choice"]
    choices: tuple[str, ...]
    """What may be written, or empty if any integer or text may."""
    default: object


def option_table(adapter_class: type[Adapter]) -> list[Option]:
    """Returns the adapter's options in the order of its signature. Raises TypeError if one is annotated or
    defaulted against the contract."""
    return [_option(parameter, annotation) for parameter, annotation in _parameters(adapter_class)]


def converted(backend: str, adapter_class: type[Adapter], name: str, value: str) -> object:
    """Returns an option's value, which the user wrote as text, in the type that the adapter's signature asks
    for. Raises BadInput, which names the backend, if there is no such option or no such value."""
    annotations = {
        parameter.name: (parameter, annotation) for parameter, annotation in _parameters(adapter_class)
    }
    if name not in annotations:
        hint = did_you_mean(name, list(annotations)) or "; it has none"
        raise BadInput(f'backend "{backend}" has no option "{name}"{hint}')
    parameter, annotation = annotations[name]
    option = _option(parameter, annotation)
    if option.kind == "bool" and value.lower() in ("true", "yes", "1"):
        return True
    if option.kind == "bool" and value.lower() in ("false", "no", "0"):
        return False
    if option.kind == "int" and re.fullmatch(r"[+-]?[0-9]+", value):
        return int(value)
    if option.kind == "str":
        return value
    if value in option.choices and option.kind == "choice":
        return get_args(annotation)[option.choices.index(value)]
    expected = "an integer" if option.kind == "int" else " or ".join(option.choices)
    raise BadInput(f'backend "{backend}": option {name}={value} must be {expected}')


def _parameters(adapter_class: type[Adapter]) -> Iterator[tuple[inspect.Parameter, Any]]:
    """Yields the keyword-only parameters, each with its annotation. An annotation is evaluated alone, because
    that of another parameter may be known to type checkers only."""
    constructor: Any = adapter_class.__init__
    for parameter in inspect.signature(constructor).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY:
            annotation = parameter.annotation
            if isinstance(annotation, str):
                annotation = eval(annotation, constructor.__globals__)
            yield parameter, annotation


def _option(parameter: inspect.Parameter, annotation: Any) -> Option:
    if parameter.default is parameter.empty:
        raise TypeError(f'option "{parameter.name}" has no default')
    if get_origin(annotation) is Literal:
        return Option(parameter.name, "choice", tuple(map(str, get_args(annotation))), parameter.default)
    if annotation is bool:
        return Option(parameter.name, "bool", ("true", "false"), parameter.default)
    if annotation is int:
        return Option(parameter.name, "int", (), parameter.default)
    if annotation is str:
        return Option(parameter.name, "str", (), parameter.default)
    how = "has no annotation" if annotation is parameter.empty else f"is annotated {annotation!r}"
    raise TypeError(f'option "{parameter.name}" {how}; it must be bool, int, str or Literal[...]')
