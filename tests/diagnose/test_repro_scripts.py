"""The script of each backend says that its library does not take a grammar, and shows a walk of one that it
takes."""

from __future__ import annotations

import subprocess
import sys

import pytest

from harness.backend.grammar import Dialect, Grammar
from harness.backend.registry import make, parse_spec
from harness.backend.vocabulary import byte_vocabulary
from harness.diagnose.repro.standalone import Shown, stand_alone
from harness.diagnose.shrink import Outcome
from harness.diagnose.shrink.stepping import small_vocabulary, stepped

REFUSED: dict[str, tuple[Dialect, str, str]] = {
    "llguidance": ("json_schema", '{"uniqueItems": true}', 'Unimplemented keys: ["uniqueItems"]'),
    "llama-cpp": ("ebnf", 'root ::= root "a"', "does not take this grammar"),
    "xgrammar": ("ebnf", "root ::= x", 'Rule "x" is not defined'),
    "outlines-core": ("regex", "(?=a)b", "ValueError"),
    "lm-format-enforcer": ("regex", "(", "InvalidSyntax"),
    "formatron": ("regex", "(?=a)b", "KBNF parsing error"),
}
"""For each backend a grammar that it does not take, and what its library says of that."""


def ran(
    backend: str, grammar: Grammar, walk: tuple[bytes, ...] = (b"a",)
) -> subprocess.CompletedProcess[str]:
    if backend == "llama-cpp":  # of the six the only one that `backends` and `more` do not install
        pytest.importorskip("llama_cpp")
    shown = Shown(
        library=backend,
        grammar=grammar,
        content=b"a",
        valid=None,
        walk=walk,
        asserts_formats=False,
        ends=True,
        outcome=Outcome("declined", "unsupported"),
        text="",
        words=tuple(word for word in walk if len(word) > 1),
        vocabulary="bytes",
    )
    text = stand_alone(shown, make(parse_spec(backend), byte_vocabulary()).script(grammar))
    return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize(
    "backend", [pytest.param(name, marks=[pytest.mark.long] * (name != "llguidance")) for name in REFUSED]
)
def test_a_script_says_that_its_library_does_not_take_the_grammar(backend: str) -> None:
    dialect, text, said = REFUSED[backend]
    done = ran(backend, Grammar(dialect, text))
    assert done.returncode == 1 and said in done.stderr and "True" not in done.stdout


@pytest.mark.parametrize("backend", [pytest.param(name, marks=pytest.mark.long) for name in REFUSED])
def test_a_script_shows_a_walk_of_a_grammar_that_its_library_takes(backend: str) -> None:
    done = ran(backend, Grammar("regex", "b*a"))
    assert done.returncode == 0, done.stderr
    assert [line.split()[-2:] for line in done.stdout.splitlines()] == [["True", "True"]] * 2


@pytest.mark.parametrize(
    "backend", [pytest.param(name, marks=[pytest.mark.long] * (name != "llguidance")) for name in REFUSED]
)
@pytest.mark.parametrize("walk", [(b"ab", b"cd"), (b"a", b"bcd")])
def test_a_script_shows_what_was_seen_on_the_tokens_that_it_has(
    backend: str, walk: tuple[bytes, ...]
) -> None:
    """In forced text the tokens depend on how the tokenizer cuts it, for the backends that ask it."""
    grammar = Grammar("regex", "abcd")
    done = ran(backend, grammar, walk)
    assert done.returncode == 0, done.stderr
    few = small_vocabulary([word for word in walk if len(word) > 1])
    tokens = [few.ids_by_bytes[word] for word in walk]
    steps = list(stepped(make(parse_spec(backend), few), grammar, [*tokens, few.eos_token]))
    seen = [[str(step.allowed), str(step.accepted)] for step in steps]
    assert [line.split()[-2:] for line in done.stdout.splitlines()] == seen
