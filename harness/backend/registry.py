"""Adapters by name, and what a user writes to choose one.

    --backends name,name==version,name==./path/to.whl,name:option=value:option=value,package.module:Class:option=value

`,` separates backends and `:` separates options, so neither can stand in a value or a path. A name is that of
a file in `harness.adapters`, of an entry point in the group `harness.adapters`, or `module:Class`; `-` and
`_` are the same in it. Parsing and looking up import no adapter; `load` and `make` do, and belong in a
worker.
"""  # noqa: E501

from __future__ import annotations

import json
import os
import pkgutil
import re
import sys
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, PackageNotFoundError, entry_points, version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.backend.options import converted
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

    @property
    def options_text(self) -> str:
        """Returns the options as an arm of a run has them, e.g. `a=1:b=2`; empty if there are none."""
        return ":".join(f"{name}={value}" for name, value in self.options)

    def __str__(self) -> str:
        wanted = f"=={self.version}" if self.version is not None else ""
        return self.name + wanted + (f":{self.options_text}" if self.options else "")


def canonical(name: str) -> str:
    """Returns the name as we print it: a file's or entry point's name with `-` for `_`; `module:Class` as
    it is."""
    return name if ":" in name else name.replace("_", "-")


def names() -> list[str]:
    """Returns the names of all adapters of this environment, installed library or not, sorted."""
    return sorted({*_files(), *(canonical(plugin.name) for plugin in _plugins())})


def parse_spec(text: str) -> BackendSpec:
    """Returns one backend from its text, without asking whether it exists. Raises BadInput."""
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
    plugins = [plugin for plugin in _plugins() if canonical(plugin.name) == name]
    if len(plugins) + (name in files) > 1:
        owners = [plugin.dist.name if plugin.dist else plugin.value for plugin in plugins]
        owners += ["grammarbench"] if name in files else []
        raise BadInput(
            f'backend "{name}" is offered by {" and ".join(owners)}; uninstall one, or set '
            f"{NO_PLUGINS}=1 to use only ours"
        )
    if plugins:
        return _class_by_path(plugins[0].value.partition("[")[0].replace(" ", ""), name)
    if name not in files:
        raise _unknown(name, names())
    module = _import(f"{GROUP}.{files[name]}", name)
    classes: list[type[Adapter]] = [
        value for value in vars(module).values() if _is_adapter(value) and value.__module__ == module.__name__
    ]
    if len(classes) != 1:
        defined = ", ".join(adapter_class.__name__ for adapter_class in classes) or "none"
        raise BadInput(
            f'backend "{name}": {module.__file__} must define exactly one Adapter without a '
            f"leading underscore; found {defined}"
        )
    return classes[0]


def make(spec: BackendSpec, vocabulary: Vocabulary) -> Adapter:
    """Returns the adapter that the user asked for, bound to the vocabulary; one that declines every grammar
    where the backend's own loader refuses the vocabulary.

    Raises BadInput if the backend, its version or one of its options is not to be had here, TypeError for an
    adapter that has not taken the vocabulary, and whatever the adapter raises.
    """
    from harness.backend.declining import declining
    from harness.backend.grammar import UnsupportedVocabulary

    adapter_class = load(spec.name)
    if spec.version is not None:
        _check_version(spec, adapter_class.distribution)
    options = {name: converted(spec.name, adapter_class, name, value) for name, value in spec.options}
    try:
        adapter = adapter_class(vocabulary, **options)
    except UnsupportedVocabulary as error:
        return declining(adapter_class, vocabulary, str(error))
    except ImportError as error:
        raise BadInput(f'backend "{spec}" needs a library that cannot be imported: {error}') from error
    _refuse_unbound(adapter, vocabulary)
    if spec.version is not None:
        _check_wrapped_version(spec, adapter)
    return adapter


def _refuse_unbound(adapter: Adapter, vocabulary: Vocabulary) -> None:
    """Raises TypeError, as for any other call that a backend makes wrongly, for an adapter without the
    vocabulary that it was given, by which it would be judged; it may know other ends of an output."""
    from harness.backend.vocabulary import Vocabulary

    named, own = type(adapter).__name__, getattr(adapter, "vocabulary", None)
    if not isinstance(own, Vocabulary):
        raise TypeError(f"{named} has no vocabulary; its __init__ must call super().__init__(vocabulary)")
    for part in ("tokens", "special_tokens", "padding_tokens"):
        if getattr(own, part) != getattr(vocabulary, part):
            raise TypeError(f"{named} has put another vocabulary, with other {part}, in the place of its own")


def installed_version(distribution: str) -> str | None:
    """Returns the version of the distribution in this environment, or None if it is not there.

    In an environment that was made for one from a path, a local label is added to it: two wheels may bear the
    same number.
    """
    try:
        installed = version(distribution) if distribution else None
    except PackageNotFoundError:
        return None
    try:
        made_for = json.loads((Path(sys.prefix) / MARKER).read_text("utf-8"))
    except OSError:
        return installed
    return str(made_for["version"]) if made_for["distribution"] == distribution else installed


def library_of(adapter: Adapter | type[Adapter]) -> str:
    """Returns the adapter's distribution and its version here, as far as it has them."""
    return " ".join(filter(None, (adapter.distribution, installed_version(adapter.distribution))))


def recorded_version(adapter: Adapter | type[Adapter]) -> str:
    """Returns the version that stands in rows, with that of the wrapped library as a local label
    (`0.5.4+inner-0.2.8`); empty if there is none."""
    own = installed_version(adapter.distribution) or ""
    wrapped = installed_version(adapter.wraps)
    return f"{_with_label(own)}{adapter.wraps}-{wrapped}" if own and wrapped else own


def _files() -> dict[str, str]:
    """Returns the module name of each file in the adapters folder by canonical name; imports none."""
    package = find_spec(GROUP)
    if package is None or package.submodule_search_locations is None:
        raise BadInput(
            f'grammarbench is not installed ({GROUP} was not found); run "pip install -e ." in the checkout'
        )
    modules = (module.name for module in pkgutil.iter_modules(package.submodule_search_locations))
    return {canonical(name): name for name in modules if not name.startswith("_")}


def _plugins() -> list[EntryPoint]:
    return [] if os.environ.get(NO_PLUGINS) else _entry_points(tuple(sys.path))


@cache
def _entry_points(path: tuple[str, ...]) -> list[EntryPoint]:
    """Returns the adapters that distributions on `path`, which is sys.path, announce; reading them takes
    10 ms."""
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
    hint = "install what it needs"
    if name == path:
        hint = "check the spelling, and that the folder of the module is on PYTHONPATH"
    module = _import(module_name, name, hint)
    value = getattr(module, attribute, None)
    if value is None:
        classes = sorted(
            key for key, value in vars(module).items() if _is_adapter(value) and key != "Adapter"
        )
        raise BadInput(
            f'backend "{name}": module {module_name} has no "{attribute}"{did_you_mean(attribute, classes)}'
        )
    if not _is_adapter(value):
        raise BadInput(f'backend "{name}": {path} is not a subclass of harness.Adapter')
    adapter_class: type[Adapter] = value
    return adapter_class


def _import(module: str, name: str, hint: str = "") -> Any:
    """Returns the module. `hint` says what may help; for an adapter of ours it is how to install its library.

    Raises BadInput."""
    try:
        return import_module(module)
    except ImportError as error:
        from harness.backend.extras import how_to_install  # reading requirements is slow to import

        adapter = find_spec(module) if not hint else None
        hint = how_to_install(Path(adapter.origin)) if adapter and adapter.origin else hint
        raise BadInput(f'backend "{name}" cannot be imported: {error}; {hint}') from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a library that is there but broken, exits, or panics in Rust
        raise BadInput(f'backend "{name}" cannot be imported: {type(error).__name__}: {error}') from error


def _check_version(spec: BackendSpec, distribution: str) -> None:
    if not distribution:
        raise BadInput(
            f'backend "{spec}" belongs to no distribution, so it has no version to ask for; write {spec.name}'
        )
    installed = installed_version(distribution) or ""
    # What a wrapper wraps is known once it is made; rows name the version of that as a local label.
    is_wrapped = bool(installed) and str(spec.version).startswith(_with_label(installed))
    if installed != spec.version and not is_wrapped:
        raise _other_version(spec, distribution, installed)


def _check_wrapped_version(spec: BackendSpec, adapter: Adapter) -> None:
    found = recorded_version(adapter)
    if spec.version not in (found, installed_version(adapter.distribution)):
        raise _other_version(spec, adapter.distribution, found)


def _with_label(version: str) -> str:
    """Returns the beginning of the version with a local label added."""
    return f"{version}{'.' if '+' in version else '+'}"


def _other_version(spec: BackendSpec, distribution: str, found: str) -> BadInput:
    """Returns the refusal of a version that is not the one installed; `found` is empty for none."""
    state = f"{found} is installed" if found else "is not installed"
    own, _, label = str(spec.version).partition("+")
    wrapped, dash, its_version = label.rpartition("-")
    wanted = f"{own} {wrapped}=={its_version}" if dash else spec.version
    return BadInput(f'backend "{spec}": {distribution} {state}; pip install {distribution}=={wanted}')
