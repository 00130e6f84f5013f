"""Adapters by name, and what a user writes to choose one.

    --backends name,name==version,name==./path/to.whl,name:option=value:option=value,package.module:Class:option=value

`,` separates backends and `:` separates options, so neither can stand in a value or a path. A name is that of
a file in `harness.adapters`, of an entry point in the group `harness.adapters`, or `module:Class`; `-` and
`_` are the same in it. Parsing and looking up import no adapter; `load` and `make` do, and belong in a
worker.
"""  # noqa: E501

from __future__ import annotations

import inspect
import json
import os
import pkgutil
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, PackageNotFoundError, entry_points, version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

from harness.errors import BadInput, did_you_mean

if TYPE_CHECKING:
    from harness.backend.grammar import Adapter
    from harness.backend.vocabulary import Vocabulary

GROUP = "harness.adapters"
"""The package with our adapters, and the entry point group with everybody else's."""

NO_PLUGINS = "GRAMMARBENCH_NO_PLUGINS"
"""Set to anything, this environment variable leaves entry points out."""

MARKER = "grammarbench.json"
"""In the folder of an environment that was made for a version of a backend: which one; written last."""

FORM = "name, name==version, name==path, name:option=value:option=value or module:Class, separated by commas"

_SPEC = re.compile(
    r"(?P<name>[A-Za-z0-9_][\w.-]*(:[A-Za-z_]\w*(?=$|:|==))?)"
    r"(==(?P<version>[^\s:,](?:[^:,\n]*[^\s:,])?))?"
    r"(?P<options>(:[A-Za-z_][\w-]*=[^:]*)*)"
)


@dataclass(frozen=True)
class BackendSpec:
    """A backend as the user asked for it; `str()` gives the text back in one form, whatever form it was
    written in."""

    name: str
    version: str | None = None
    options: tuple[tuple[str, str], ...] = ()
    """Sorted by name, as text: only the adapter's class knows the types."""

    def __str__(self) -> str:
        wanted = f"=={self.version}" if self.version is not None else ""
        return self.name + wanted + "".join(f":{name}={value}" for name, value in self.options)


@dataclass(frozen=True)
class Option:
    """A keyword-only parameter of an adapter."""

    name: str
    kind: Literal["bool", "int", "str", "choice"]
    choices: tuple[str, ...]
    """What may be written, or empty if any integer or text may."""
    default: object


def canonical(name: str) -> str:
    """Returns the name as we print it: a file's or entry point's name with `-` for `_`; `module:Class` as
    it is."""
    return name if ":" in name else name.replace("_", "-")


def names() -> list[str]:
    """Returns the names of all adapters of this environment, installed library or not, sorted."""
    return sorted({*_files(), *(canonical(each.name) for each in _plugins())})


def parse_spec(text: str) -> BackendSpec:
    """One backend from its text, without asking whether it exists."""
    match = _SPEC.fullmatch(text.strip())
    if match is None:
        raise BadInput(f'backend "{text}" cannot be read; write {FORM}')
    options: dict[str, str] = {}
    for part in match["options"].split(":")[1:]:
        option, _, value = part.partition("=")
        option = option.replace("-", "_")
        if option in options:
            raise BadInput(f'backend "{text}" sets option "{option}" twice; keep one')
        options[option] = value
    return BackendSpec(canonical(match["name"]), match["version"], tuple(sorted(options.items())))


def parse_specs(text: str) -> list[BackendSpec]:
    """Returns the backends of a `--backends` text, each known by name (or given as `module:Class`) and
    asked for once."""
    specs: list[BackendSpec] = []
    known = names()
    for part in text.split(","):
        spec = parse_spec(part)
        module, _, attribute = spec.name.partition(":")
        if attribute.islower() and canonical(module) in known:
            raise BadInput(
                f'backend "{part.strip()}": option "{attribute}" has no value; write '
                f"{module}:{attribute}=VALUE"
            )
        if not attribute and spec.name not in known:
            raise _unknown(spec.name, known)
        if spec in specs:
            raise BadInput(f'backend "{spec}" is asked for twice; keep one')
        specs.append(spec)
    return specs


def load(name: str) -> type[Adapter]:
    """Returns the adapter's class; imports its module, and with it the backend's library.

    Raises BadInput if the name is unknown or ambiguous, if a library is missing, or if there is no adapter in
    the module.
    """
    if ":" in name:
        return _class_by_path(name)
    name = canonical(name)
    files = _files()
    plugins = [each for each in _plugins() if canonical(each.name) == name]
    if len(plugins) + (name in files) > 1:
        owners = [each.dist.name if each.dist else each.value for each in plugins] + ["grammarbench"] * (
            name in files
        )
        raise BadInput(
            f'backend "{name}" is offered by {" and ".join(owners)}; uninstall one, or set '
            f"{NO_PLUGINS}=1 to use only ours"
        )
    if plugins:
        return _class_by_path(plugins[0].value.partition("[")[0].replace(" ", ""), name)
    if name not in files:
        raise _unknown(name, names())
    module = _import(f"{GROUP}.{files[name]}", name, 'pip install "grammarbench[backends]"')
    classes: list[type[Adapter]] = [
        each for each in vars(module).values() if _is_adapter(each) and each.__module__ == module.__name__
    ]
    if len(classes) != 1:
        found = ", ".join(each.__name__ for each in classes) or "none"
        raise BadInput(
            f'backend "{name}": {module.__file__} must define exactly one Adapter without a '
            f"leading underscore; found {found}"
        )
    return classes[0]


def make(spec: BackendSpec, vocabulary: Vocabulary) -> Adapter:
    """Returns the adapter that the user asked for, bound to the vocabulary.

    Raises BadInput if the backend, its version or one of its options is not to be had here.
    """
    adapter_class = load(spec.name)
    if spec.version is not None:
        _check_version(spec, adapter_class.distribution)
    options = {name: _convert(spec, adapter_class, name, value) for name, value in spec.options}
    try:
        return adapter_class(vocabulary, **options)
    except ImportError as error:
        raise BadInput(f'backend "{spec}" needs a library that cannot be imported: {error}') from error


def installed_version(distribution: str) -> str | None:
    """Returns the version of the distribution in this environment, or None if it is not there.

    In an environment that was made for one from a path, a local label is added to it: two wheels may bear the
    same number.
    """
    try:
        found = version(distribution) if distribution else None
    except PackageNotFoundError:
        return None
    try:
        made_for = json.loads((Path(sys.prefix) / MARKER).read_text("utf-8"))
    except OSError:
        return found
    return str(made_for["version"]) if made_for["distribution"] == distribution else found


def recorded_version(adapter: Adapter | type[Adapter]) -> str:
    """Returns the version that stands in rows, with that of the wrapped library as a local label
    (`0.5.4+inner-0.2.8`); empty if there is none."""
    found = installed_version(adapter.distribution) or ""
    inner = installed_version(adapter.wraps)
    return f"{found}{'.' if '+' in found else '+'}{adapter.wraps}-{inner}" if found and inner else found


def option_table(adapter_class: type[Adapter]) -> list[Option]:
    """Returns the adapter's options in the order of its signature; raises TypeError if one is annotated or
    defaulted against the contract."""
    return [_option(parameter, annotation) for parameter, annotation in _parameters(adapter_class)]


def _files() -> dict[str, str]:
    """Canonical name -> module name of each file in the adapters folder, without importing it."""
    package = find_spec(GROUP)
    if package is None or package.submodule_search_locations is None:
        raise BadInput(
            f'grammarbench is not installed ({GROUP} was not found); run "pip install -e ." in the checkout'
        )
    found = (each.name for each in pkgutil.iter_modules(package.submodule_search_locations))
    return {canonical(name): name for name in found if not name.startswith("_")}


def _plugins() -> list[EntryPoint]:
    return [] if os.environ.get(NO_PLUGINS) else _entry_points(tuple(sys.path))


@cache
def _entry_points(path: tuple[str, ...]) -> list[EntryPoint]:
    """The adapters that distributions on `path`, which is sys.path, announce; to read them takes 10 ms."""
    return list(entry_points(group=GROUP))


def _unknown(name: str, known: list[str]) -> BadInput:
    return BadInput(f'there is no backend "{name}"{did_you_mean(name, known)}')


def _is_adapter(candidate: object) -> bool:
    from harness.backend.grammar import Adapter

    return (
        isinstance(candidate, type)
        and issubclass(candidate, Adapter)
        and not candidate.__name__.startswith("_")
    )


def _class_by_path(path: str, name: str = "") -> type[Adapter]:
    """Returns the class of `module:Class`; `name` is what the user wrote, if that is not the path itself."""
    name = name or path
    module_name, _, attribute = path.partition(":")
    hint = (
        "check the spelling, and that the folder of the module is on PYTHONPATH"
        if name == path
        else ("install what it needs")
    )
    module = _import(module_name, name, hint)
    found = getattr(module, attribute, None)
    if found is None:
        classes = sorted(
            key for key, value in vars(module).items() if _is_adapter(value) and key != "Adapter"
        )
        raise BadInput(
            f'backend "{name}": module {module_name} has no "{attribute}"{did_you_mean(attribute, classes)}'
        )
    if not _is_adapter(found):
        raise BadInput(f'backend "{name}": {path} is not a subclass of harness.Adapter')
    adapter_class: type[Adapter] = found
    return adapter_class


def _import(module: str, name: str, hint: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise BadInput(f'backend "{name}" cannot be imported: {error}; {hint}') from error
    except Exception as error:  # a library that is there but broken
        raise BadInput(f'backend "{name}" cannot be imported: {type(error).__name__}: {error}') from error


def _check_version(spec: BackendSpec, distribution: str) -> None:
    if not distribution:
        raise BadInput(
            f'backend "{spec}" belongs to no distribution, so it has no version to ask for; write {spec.name}'
        )
    installed = installed_version(distribution)
    if installed != spec.version:
        found = (
            f"{distribution} {installed} is installed" if installed else (f"{distribution} is not installed")
        )
        raise BadInput(f'backend "{spec}": {found}; pip install {distribution}=={spec.version}')


def _parameters(adapter_class: type[Adapter]) -> Iterator[tuple[inspect.Parameter, Any]]:
    """The keyword-only parameters, each with its annotation evaluated alone: another one may be known to type
    checkers only."""
    constructor: Any = adapter_class.__init__
    for parameter in inspect.signature(constructor).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY:
            annotation = parameter.annotation
            yield (
                parameter,
                eval(annotation, constructor.__globals__) if isinstance(annotation, str) else annotation,
            )


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
    raise TypeError(
        f'option "{parameter.name}" is annotated {annotation!r}; it must be bool, int, str or Literal[...]'
    )


def _convert(spec: BackendSpec, adapter_class: type[Adapter], name: str, value: str) -> object:
    """Returns the option's value in the type that the adapter's signature asks for."""
    parameters = {
        parameter.name: (parameter, annotation) for parameter, annotation in _parameters(adapter_class)
    }
    if name not in parameters:
        hint = did_you_mean(name, list(parameters)) or "; it has none"
        raise BadInput(f'backend "{spec.name}" has no option "{name}"{hint}')
    parameter, annotation = parameters[name]
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
    raise BadInput(f'backend "{spec.name}": option {name}={value} must be {expected}')
