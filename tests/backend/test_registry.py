"""Adapters by name, and the grammar of `--backends`."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from places import ROOT, SUPPORT

import harness
from harness.backend import registry
from harness.backend.contract import check_adapter
from harness.backend.extras import how_to_install
from harness.backend.grammar import Adapter, CompiledGrammar, Grammar, UnsupportedGrammar
from harness.backend.options import Option, option_table
from harness.backend.registry import BackendSpec, load, make, names, parse_spec, parse_specs
from harness.backend.vocabulary import Vocabulary, byte_vocabulary
from harness.errors import BadInput


class Choosy(Adapter):
    """An adapter with one option of each kind."""

    distribution = "numpy"
    dialects = frozenset()

    def __init__(
        self,
        vocabulary: Vocabulary,
        *,
        strict: bool = False,
        depth: int = 3,
        prefix: str = "",
        whitespace: Literal["any", "compact"] = "any",
        level: Literal[1, 2] = 1,
    ) -> None:
        super().__init__(vocabulary)
        self.seen = (strict, depth, prefix, whitespace, level)

    def compile(self, grammar: Grammar) -> CompiledGrammar:
        raise UnsupportedGrammar(grammar.dialect)


class Replacing(Choosy):
    """An adapter that puts another vocabulary in the place of its own, in the field that its option names."""

    def __init__(self, vocabulary: Vocabulary, *, part: str = "") -> None:
        super().__init__(vocabulary)
        end = vocabulary.eos_tokens[0]
        if part == "tokens":
            self.vocabulary = replace(vocabulary, tokens=(b"?", *vocabulary.tokens[1:]))
        elif part == "special_tokens":
            self.vocabulary = replace(vocabulary, special_tokens={**vocabulary.special_tokens, 1: "<one>"})
        elif part == "padding_tokens":
            self.vocabulary = replace(vocabulary, padding_tokens=frozenset({2}))
        else:
            self.take_ends("The library has one.", [end])


@pytest.mark.parametrize("part", ["tokens", "special_tokens", "padding_tokens"])
def test_an_adapter_is_not_judged_by_a_vocabulary_of_its_own(choosy: str, part: str) -> None:
    spec = parse_spec(f"{choosy.replace('Choosy', 'Replacing')}:part={part}")
    with pytest.raises(TypeError, match=f"^Replacing has put another vocabulary, with other {part}, in the"):
        make(spec, byte_vocabulary())
    assert make(parse_spec(choosy.replace("Choosy", "Replacing")), byte_vocabulary()).knows_one_end


@pytest.fixture
def choosy(monkeypatch: pytest.MonkeyPatch) -> str:
    """The name under which `Choosy` can be asked for."""
    monkeypatch.setitem(sys.modules, "choosy_module", sys.modules[__name__])
    return "choosy_module:Choosy"


@pytest.fixture(scope="module")
def toy_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pip has put the third-party package."""
    if (
        find_spec("setuptools") is None
    ):  # not imported: it refuses to be where distutils already is, and torch brings that in
        pytest.skip("setuptools is not here to build the package")
    source = shutil.copytree(SUPPORT / "third_party", tmp_path_factory.mktemp("source") / "toy")
    target = tmp_path_factory.mktemp("site")
    options = ["--no-index", "--no-build-isolation", "--no-deps", "--quiet", "--disable-pip-version-check"]
    subprocess.run(
        [sys.executable, "-m", "pip", "install", *options, "--target", str(target), str(source)], check=True
    )
    return target


@pytest.fixture
def toy(toy_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The third-party package is installed."""
    monkeypatch.delenv(registry.NO_PLUGINS, raising=False)
    monkeypatch.syspath_prepend(str(toy_folder))
    yield
    sys.modules.pop("toy_backend", None)


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("plain", BackendSpec("plain")),
        (" outlines_like ", BackendSpec("outlines-like")),
        ("a==1.9.1", BackendSpec("a", "1.9.1")),
        ("a==2.13.0+cpu", BackendSpec("a", "2.13.0+cpu")),
        (
            "a:mask=bool:any-whitespace=no",
            BackendSpec("a", None, (("any_whitespace", "no"), ("mask", "bool"))),
        ),
        ("a==1:x=", BackendSpec("a", "1", (("x", ""),))),
        ("a:x=b=c==d", BackendSpec("a", None, (("x", "b=c==d"),))),
        ("my.module:Class", BackendSpec("my.module:Class")),
        (
            "my_module:Class==2:x=1:y=/tmp/z",
            BackendSpec("my_module:Class", "2", (("x", "1"), ("y", "/tmp/z"))),
        ),
    ],
)
def test_a_spec_is_read(text: str, spec: BackendSpec) -> None:
    assert parse_spec(text) == spec


@pytest.mark.parametrize(
    "text",
    ["", "a b", "a=1", "a==", "a:", "a:x=1:", "a:x=1:y", ":Class", "module:", "module:C:D", "a:1=2", "-a"],
)
def test_a_malformed_spec_is_bad_input(text: str) -> None:
    with pytest.raises(BadInput, match="cannot be read"):
        parse_spec(text)


words = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True)
values = st.text(
    st.characters(blacklist_characters=",:\n\r", blacklist_categories=["Cs", "Cc", "Z"]), max_size=8
).filter(lambda value: not value.startswith("="))
"""`a:x==1` is version 1 of the class x in the module a."""


@given(
    name=st.one_of(words.map(registry.canonical), st.tuples(words, words).map(":".join)),
    version=st.one_of(st.none(), st.from_regex(r"[0-9]{1,3}(\.[0-9]{1,3}){0,2}(\+cpu)?", fullmatch=True)),
    options=st.dictionaries(words, values, max_size=3),
)
def test_a_printed_spec_is_read_back(name: str, version: str | None, options: dict[str, str]) -> None:
    spec = BackendSpec(name, version, tuple(sorted(options.items())))
    assert parse_spec(str(spec)) == spec


def test_an_option_set_twice_is_bad_input() -> None:
    with pytest.raises(BadInput, match='"x_y" twice'):
        parse_spec("a:x_y=1:x-y=2")


def test_several_backends_are_separated_by_commas() -> None:
    first, second = names()[:2]
    assert [str(spec) for spec in parse_specs(f"{first}, {second}==1.2:x=1:y=2,m:C:z=3")] == [
        first,
        f"{second}==1.2:x=1:y=2",
        "m:C:z=3",
    ]


def test_a_backend_asked_for_twice_is_bad_input() -> None:
    name = names()[0]
    with pytest.raises(BadInput, match="twice"):
        parse_specs(f"{name}:x=1:y=2,{name}:y=2:x=1")


def test_an_unknown_name_gets_a_suggestion() -> None:
    name = max(names(), key=len)
    for ask in (parse_specs, load):
        with pytest.raises(BadInput, match=f'there is no backend "{name}x"; did you mean "{name}"'):
            ask(name + "x")


def test_an_option_without_value_is_not_taken_for_a_class() -> None:
    with pytest.raises(BadInput, match=r"has no value; write .*:some_option=VALUE"):
        parse_specs(f"{names()[0]}:some_option")


def test_every_file_in_adapters_is_a_name() -> None:
    files = {path.stem for path in (ROOT / "adapters").glob("[!_]*.py")}
    assert files and {file.replace("_", "-") for file in files} <= set(names())


def test_dash_and_underscore_are_the_same_name() -> None:
    assert load("outlines-core") is load("outlines_core")


def test_naming_and_parsing_import_no_adapter() -> None:
    program = (
        "import sys; from harness.backend.registry import names, parse_specs; "
        "parse_specs(','.join(names()))\n"
        "heavy = {'torch', 'pandas', 'transformers', *(name.replace('-', '_') for name in names())} & "
        "set(sys.modules)\n"
        "loaded = [name for name in sys.modules if name.startswith('harness.adapters')]\n"
        "print(sorted(heavy), loaded)"
    )
    assert (
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
        == "[] []\n"
    )


def test_a_checkout_without_installation_says_so(tmp_path: Path) -> None:
    source = Path(harness.__file__).parent
    skipped = shutil.ignore_patterns("__pycache__", "adapters", "suites", "results", "reports")
    shutil.copytree(source, tmp_path / "harness", ignore=skipped)
    program = (
        f"import sys; sys.path[:0] = [{str(tmp_path)!r}, {sysconfig.get_path('purelib')!r}]\n"
        "from harness.backend.registry import parse_specs\n"
        "try: parse_specs('anything')\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-E", "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert (
        done.stdout.startswith("BadInput grammarbench is not installed")
        and 'run "pip install -e ."' in done.stdout
    )


def test_options_are_converted_by_the_signature(choosy: str) -> None:
    adapter = make(
        parse_spec(f"{choosy}:strict=Yes:depth=-7:prefix=1:whitespace=compact:level=2"), byte_vocabulary()
    )
    assert isinstance(adapter, Choosy) and adapter.seen == (True, -7, "1", "compact", 2)
    assert make(parse_spec(f"{choosy}:strict=0"), byte_vocabulary()).__dict__["seen"] == (
        False,
        3,
        "",
        "any",
        1,
    )


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("strict=maybe", "strict=maybe must be true or false"),
        ("depth=1.5", "depth=1.5 must be an integer"),
        ("whitespace=some", "whitespace=some must be any or compact"),
        ("level=3", "level=3 must be 1 or 2"),
        ("strickt=true", 'has no option "strickt"; did you mean "strict"'),
        ("vocabulary=x", 'has no option "vocabulary"'),
    ],
)
def test_a_wrong_option_is_bad_input(choosy: str, option: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        make(parse_spec(f"{choosy}:{option}"), byte_vocabulary())


def test_the_option_table_lists_the_signature() -> None:
    assert option_table(Choosy) == [
        Option("strict", "bool", ("true", "false"), False),
        Option("depth", "int", (), 3),
        Option("prefix", "str", (), ""),
        Option("whitespace", "choice", ("any", "compact"), "any"),
        Option("level", "choice", ("1", "2"), 1),
    ]


def test_the_installed_version_may_be_asked_for_and_no_other(choosy: str) -> None:
    installed = registry.installed_version("numpy")
    assert installed and make(parse_spec(f"{choosy}=={installed}"), byte_vocabulary())
    with pytest.raises(BadInput, match=f"numpy {installed} is installed; pip install numpy==0.1"):
        make(parse_spec(f"{choosy}==0.1"), byte_vocabulary())


def test_the_version_that_a_run_records_of_a_wrapper_may_be_asked_for(
    choosy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It names the library that is wrapped, which is known once the adapter is made."""
    monkeypatch.setattr(Choosy, "wraps", "regex")
    own, wrapped = registry.installed_version("numpy"), registry.installed_version("regex")
    for version in (own, f"{own}+regex-{wrapped}"):
        assert make(parse_spec(f"{choosy}=={version}"), byte_vocabulary())
    for other in (f"{own}+regex-0.1", "0.1+regex-0.1", f"{own}+torch-0.1"):
        wanted = other.replace("+", " ").replace("-", "==")
        with pytest.raises(BadInput, match=f"is installed; pip install numpy=={re.escape(wanted)}$"):
            make(parse_spec(f"{choosy}=={other}"), byte_vocabulary())


def test_a_version_of_what_is_not_installed_or_has_none_is_bad_input(
    choosy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Choosy, "distribution", "no-such-distribution")
    with pytest.raises(
        BadInput, match="no-such-distribution is not installed; pip install no-such-distribution==1"
    ):
        make(parse_spec(f"{choosy}==1"), byte_vocabulary())
    monkeypatch.setattr(Choosy, "distribution", "")
    with pytest.raises(BadInput, match="no version to ask for"):
        make(parse_spec(f"{choosy}==1"), byte_vocabulary())


@pytest.mark.parametrize(
    ("name", "library", "extra"),
    [
        ("llama-cpp", "llama_cpp", "llama"),
        ("formatron", "kbnf", "more"),
        ("xgrammar", "xgrammar", "backends"),
    ],
)
def test_a_missing_library_is_told_with_the_extra_that_has_it(
    name: str, library: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, f"{registry.GROUP}.{name.replace('-', '_')}", raising=False)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(BadInput, match=re.escape(f'; pip install "grammarbench[{extra}]"')):
        load(name)


def test_an_adapter_whose_library_no_extra_has_is_told_its_distribution(tmp_path: Path) -> None:
    adapter = tmp_path / "adapter.py"
    adapter.write_text("import no_such\nclass Other:\n    distribution = 'no-such'\n")
    assert how_to_install(adapter) == "pip install no-such"


@pytest.mark.parametrize(
    ("source", "name", "message"),
    [
        ("import no_such_library", "broken:A", "No module named 'no_such_library'"),
        ("raise OSError('libcuda.so is missing')", "broken:A", "OSError: libcuda.so is missing"),
        (
            "from harness import Adapter\nclass Right(Adapter): ...",
            "broken:Rihgt",
            'no "Rihgt"; did you mean "Right"',
        ),
        ("A = dict", "broken:A", "not a subclass of harness.Adapter"),
        ("", "brokem:A", "No module named 'brokem'; check the spelling"),
    ],
)
def test_what_cannot_be_loaded_is_bad_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, name: str, message: str
) -> None:
    (tmp_path / "broken.py").write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path))
    try:
        with pytest.raises(BadInput, match=message):
            load(name)
    finally:
        sys.modules.pop("broken", None)


@pytest.mark.usefixtures("toy")
def test_a_third_party_adapter_is_found_by_name_and_keeps_the_contract() -> None:
    assert "toy-choice" in names()
    adapter = make(parse_specs("toy_choice==1.5:lower=true")[0], byte_vocabulary())
    assert type(adapter).__module__ == "toy_backend" and type(adapter) is load("toy-choice")
    results = check_adapter(adapter)
    assert [result for result in results if result.status in ("failed", "error")] == []
    assert sum(result.status == "passed" for result in results) > len(results) / 2


@pytest.mark.usefixtures("toy")
def test_plugins_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(registry.NO_PLUGINS, "1")
    assert "toy-choice" not in names()
    with pytest.raises(BadInput, match="there is no backend"):
        load("toy-choice")
    assert load("toy_backend:ToyChoice")


@pytest.mark.usefixtures("toy")
def test_a_plugin_does_not_replace_a_file_of_ours_silently(
    toy_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = names()[0]
    folder = tmp_path / "impostor-1.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: impostor\nVersion: 1\n")
    (folder / "entry_points.txt").write_text(f"[harness.adapters]\n{name} = toy_backend:ToyChoice\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(BadInput, match=f'"{name}" is offered by impostor and grammarbench'):
        load(name)
