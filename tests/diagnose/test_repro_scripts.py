"""The script of each backend says that its library does not take a grammar, and shows a walk of one that it
takes."""

from __future__ import annotations

import ast
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


EVIL = "zz\nimport os\ros.abort()\u2028#"


def of_outcome(outcome: Outcome, grammar: Grammar, text: str = "", library: str = "") -> str:
    """The script of a failure without an instance, whose body is one line."""
    shown = Shown(
        library=library, grammar=grammar, content=None, valid=None, walk=(b"a",), asserts_formats=False,
        ends=False, outcome=outcome, text=text, words=None, vocabulary=EVIL,
    )  # fmt: skip
    return stand_alone(shown, "print(walk)")


@pytest.mark.parametrize(
    "outcome",
    [
        Outcome("unjudged", check=EVIL),
        Outcome("broken", "crash", EVIL, EVIL),
    ],
)
def test_what_rows_of_others_say_becomes_no_line_of_code(outcome: Outcome) -> None:
    script = of_outcome(outcome, Grammar("regex", "a"), EVIL, EVIL)
    kinds = [type(each).__name__ for each in ast.parse(script).body]
    assert kinds == ["Assign", "Assign", "Assign", "Expr"] and "# expected: " in script


@pytest.mark.parametrize(
    ("grammar", "why"),
    [
        (Grammar("ebnf", 'root ::= "a"'), "because it is a right ebnf"),
        (Grammar("ebnf", "root ::= x"), "if it is a right ebnf; GrammarBench could not tell that it is one"),
        (Grammar("json_schema", '{"type": "int"}'), "if it is a right json schema; "),
    ],
)
def test_a_declined_grammar_is_called_right_only_where_it_is_one(grammar: Grammar, why: str) -> None:
    assert why in of_outcome(Outcome("declined", "invalid"), grammar)
