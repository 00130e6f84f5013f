"""The jump map, tokenizing anew, the adapter around an adapter, and the three ceilings."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jump_maps import with_jump_map
from miniatures.reference import Reference, ReferenceObject, small_vocabulary
from miniatures.wrong_jumps import Exact, jumping_vocabulary

from harness.backend.contract import check_adapter
from harness.backend.grammar import (
    Adapter,
    CompiledGrammar,
    Dialect,
    Grammar,
    GrammarObject,
    allocate_bitmask,
    overrides,
)
from harness.backend.registry import load
from harness.backend.vocabulary import Vocabulary, byte_vocabulary, load_vocabulary
from harness.cli.main import main
from harness.oracle.automaton import DEAD, Automaton, NoOracle
from harness.oracle.choice import ChoiceAutomaton
from harness.oracle.forced_text.ceilings import Ceilings, ceilings
from harness.oracle.forced_text.compressed_fsm import Jump, JumpMap, split_jump
from harness.oracle.forced_text.retokenize import follows_from, retokenize, settled_bytes
from harness.oracle.language import language_of
from harness.oracle.trie import trie_of
from harness.report.tables.ceiling import ceiling_frame

TEXTS = st.lists(st.text(alphabet="abé語😀😁", max_size=6), min_size=1, max_size=5)


def choice(*texts: str) -> ChoiceAutomaton:
    return ChoiceAutomaton(frozenset(text.encode() for text in texts))


class Counted(Automaton[int]):
    """`a` so many times, or without end if the count is negative (which no reference automaton allows)."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.asked = 0
        super().__init__(0)

    def _successors(self, key: int) -> Iterator[tuple[int, int, int]]:
        self.asked += 1
        if key != self.count:
            yield 97, 97, 0 if self.count < 0 else key + 1

    def _is_accepting(self, key: int) -> bool:
        return key == self.count


# The jump map


def everywhere(automaton: Automaton[Any]) -> list[int]:
    """All of its states, each expanded."""
    found = [automaton.start]
    for state in found:
        found += {automaton.step(state, byte) for byte in range(256)} - {DEAD, *found}
    return found


@given(TEXTS, st.randoms(use_true_random=False))
@settings(max_examples=60, derandomize=True, deadline=None)
def test_the_byte_level_jump_is_what_is_forced_in_whichever_order_states_are_asked(
    texts: list[str], rng: random.Random
) -> None:
    automaton = choice(*texts)
    states = everywhere(automaton)
    rng.shuffle(states)
    jumps = JumpMap(automaton)
    for state in states:
        assert jumps.jump_bytes(state) == automaton.forced(state)


@given(TEXTS)
@settings(max_examples=60, derandomize=True, deadline=None)
def test_the_two_levels_together_are_the_byte_level(texts: list[str]) -> None:
    automaton = choice(*texts)
    jumps = JumpMap(automaton)
    for state in everywhere(automaton):
        jump = split_jump(jumps.jump_bytes(state))
        forced = jumps.jump_bytes(state)
        assert jump.continuation + jump.text.encode() + jump.begun == forced


def test_a_state_with_a_choice_or_a_possible_end_has_no_edge() -> None:
    jumps = JumpMap(choice("ab", "ac", "b", "bcd"))
    start = jumps.automaton.start
    assert jumps.byte_edge(start) is None  # a or b
    after_a, after_b = jumps.automaton.step(start, 97), jumps.automaton.step(start, 98)
    assert jumps.byte_edge(after_a) is None  # b or c
    assert jumps.byte_edge(after_b) is None  # the end or c
    assert jumps.jump_bytes(jumps.automaton.run(start, b"bc")) == b"d"
    assert jumps.jump_bytes(jumps.automaton.run(start, b"ab")) == b""
    assert jumps.byte_edge(DEAD) is None and jumps.jump_bytes(DEAD) == b""


def test_sglangs_own_examples() -> None:
    """霍格沃茨特快列车|霍比特人比尔博: both go on with 0xE6; inside a character its rest comes first, then the text."""  # noqa: E501
    jumps = JumpMap(choice("霍格沃茨特快列车", "霍比特人比尔博"))
    start = jumps.automaton.start
    assert split_jump(jumps.jump_bytes(start)) == Jump(b"", "霍", b"\xe6")
    inside = jumps.automaton.run(start, "霍格".encode()[:5])
    assert split_jump(jumps.jump_bytes(inside)) == Jump("格".encode()[2:], "沃茨特快列车")


def test_a_class_of_characters_is_jumped_at_byte_level_only() -> None:
    automaton = language_of(Grammar("regex", "x[é-ï]y"))
    jumps = JumpMap(automaton)
    assert (
        jumps.jump_bytes(automaton.start) == b"x\xc3"
        and split_jump(jumps.jump_bytes(automaton.start)).text == "x"
    )


@pytest.mark.parametrize("pattern", ["[^ab]x", ".x", "[^a]x|ax", r"(.|\n)x"])
def test_a_wildcard_is_an_outgoing_symbol_like_any_other(pattern: str) -> None:
    """SGLang's map passed over the wildcard before it counted, so that `[^ab]x` began with a jump
    over `x`.
    """
    automaton = language_of(Grammar("regex", pattern))
    jumps = JumpMap(automaton)
    assert jumps.jump_bytes(automaton.start) == b""
    assert jumps.jump_bytes(automaton.step(automaton.start, ord("q"))) == b"x"


@pytest.mark.parametrize("order", [1, -1])
def test_each_state_of_a_chain_is_looked_at_once(order: int) -> None:
    automaton = Counted(1000)
    jumps = JumpMap(automaton)
    states = everywhere(automaton)
    looked = automaton.asked
    edges = 0

    class Watched(JumpMap):
        def byte_edge(self, state: int) -> tuple[int, int] | None:
            nonlocal edges
            edges += 1
            return super().byte_edge(state)

    jumps = Watched(automaton)
    for state in states[::order]:
        assert len(jumps.jump_bytes(state)) == 1000 - states.index(state)
    assert edges <= 2 * len(states) and automaton.asked == looked


@pytest.mark.parametrize("order", [1, -1])
def test_a_jump_is_cut_at_the_limit_and_goes_on_from_there(order: int) -> None:
    automaton = Counted(100)
    jumps = JumpMap(automaton, limit=16)
    states = everywhere(automaton)
    for state in states[::order]:
        assert jumps.jump_bytes(state) == automaton.forced(state, 16)
    assert JumpMap(Counted(-1), limit=16).jump_bytes(1) == b"a" * 16


@pytest.mark.parametrize(
    ("forced", "jump"),
    [
        (b"", Jump()),
        (b"ab", Jump(text="ab")),
        (b"\x98\x80a\xf0\x9f", Jump(b"\x98\x80", "a", b"\xf0\x9f")),
        (b"\x98\x80", Jump(b"\x98\x80")),
        (b"\xf0\x9f\x98", Jump(begun=b"\xf0\x9f\x98")),
        (b"a\xffb", Jump(text="a", begun=b"\xffb")),
    ],
)
def test_forced_bytes_are_cut_where_characters_begin_and_end(forced: bytes, jump: Jump) -> None:
    assert split_jump(forced) == jump


# Tokenizing anew


def spelled(vocabulary: Vocabulary, rng: random.Random, text: bytes) -> list[int]:
    """The text in tokens chosen at random."""
    tokens = []
    while text:
        token = rng.choice(
            [token for start, token in vocabulary.ids_by_bytes.items() if text.startswith(start)]
        )
        tokens.append(token)
        text = text[len(vocabulary.tokens[token]) :]
    return tokens


@cache
def probe() -> Vocabulary:
    return load_vocabulary("probe")


PIECES = ["ab", "abc", "cd", " p", "please", "日", "本", "語", "x😀", "e, ", "s", '": "', "}", "0", "12", "é"]


@pytest.mark.parametrize("vocabulary", [jumping_vocabulary, probe, byte_vocabulary])
def test_what_is_settled_stays_whatever_follows(vocabulary: Any) -> None:
    tokens = vocabulary()
    rng = random.Random("retokenize")
    held = 0
    for _ in range(150):
        said, forced, more = ("".join(rng.choices(PIECES, k=rng.randrange(4))).encode() for _ in range(3))
        forced = forced[: rng.randrange(len(forced) + 1)]  # ends anywhere, also inside a character
        history = spelled(tokens, rng, said)
        keep, ids = retokenize(tokens, history, forced)
        after = history[:keep] + ids
        text = tokens.decode(after)
        assert text.startswith(said) and (said + forced).startswith(text)
        held += len(text) < len(said + forced)
        if ids:
            assert tokens.encode(said + forced + more)[: len(after)] == after
        keep, ids = retokenize(tokens, history, forced, hold=False)
        assert history[:keep] + ids == tokens.encode(said + forced)
        assert keep == len(history) or not ids or history[keep] != ids[0]
    assert held if tokens.name != "bytes" else not held


def test_what_may_merge_is_held_back_and_what_was_said_is_not_taken_back() -> None:
    vocabulary = jumping_vocabulary()
    name = {text: token for token, text in enumerate(vocabulary.tokens) if text}
    assert retokenize(vocabulary, [], b"xyab") == (0, [name[b"x"], name[b"y"]])  # ab may become abc
    assert retokenize(vocabulary, [], b"xyab", hold=False) == (0, [name[b"x"], name[b"y"], name[b"ab"]])
    assert retokenize(vocabulary, [], b"xyabcz") == (0, [name[b"x"], name[b"y"], name[b"abc"], name[b"z"]])
    assert retokenize(vocabulary, [name[b"a"]], b"b") == (1, [])  # ab is not settled, and a was said
    assert retokenize(vocabulary, [name[b"y"], name[b"a"]], b"bz") == (1, [name[b"ab"], name[b"z"]])
    assert retokenize(vocabulary, [name[b"a"], name[b"b"]], b"") == (2, [])
    assert retokenize(vocabulary, [name[b"z"]], "z日".encode()[:3]) == (
        1,
        [name[b"z"]],
    )  # the character is not complete
    assert settled_bytes(vocabulary, b"") == 0
    assert settled_bytes(vocabulary, b"zz") == 2


@given(TEXTS, st.randoms(use_true_random=False))
@settings(max_examples=60, derandomize=True, deadline=None)
def test_what_the_language_settles_stays_whatever_it_goes_on_with(
    texts: list[str], rng: random.Random
) -> None:
    """Against all sentences: those that begin with what is settled have the same tokens there."""
    sentences = [text.encode() for text in texts]
    automaton = choice(*texts)
    letters = sorted(
        {
            sentence[start:end]
            for sentence in sentences
            for start in range(len(sentence))
            for end in range(start + 1, start + 4)
        }
    )
    longer = tuple(dict.fromkeys(rng.choices(letters, k=8))) if letters else ()
    base = byte_vocabulary().tokens[:256]
    vocabulary = Vocabulary(
        "random", (*base, *longer, b""), (256 + len(longer),), {256 + len(longer): "</s>"}
    )
    for sentence in sentences:
        for end in range(len(sentence) + 1):
            text = sentence[:end]
            state = automaton.run(automaton.start, text)
            forced = automaton.forced(state)
            free = retokenize(vocabulary, list(text), forced)
            keep, ids = retokenize(
                vocabulary, list(text), forced, follows=follows_from(automaton, automaton.run(state, forced))
            )
            after = [*text[:keep], *ids]
            assert len(vocabulary.decode(after)) >= len(vocabulary.decode([*text[: free[0]], *free[1]]))
            if ids:
                assert all(
                    vocabulary.encode(other)[: len(after)] == after
                    for other in sentences
                    if other.startswith(text)
                )


@given(
    st.lists(st.text("ab日", min_size=1, max_size=5), max_size=12),
    st.binary(max_size=6) | st.text("ab日", max_size=6).map(str.encode),
    st.integers(0, 3),
)
@settings(max_examples=300, derandomize=True, deadline=None)
def test_no_token_covers_what_is_settled_and_more(longer: list[str], text: bytes, most: int) -> None:
    """Against every token at every place, where `most` bytes may follow."""
    texts = [bytes([byte]) for byte in range(256)] + [each.encode() for each in longer]
    vocabulary = Vocabulary("random", (*texts, b""), (len(texts),), {len(texts): "</s>"})
    covered = [
        at
        for at in range(len(text))
        if any(token.startswith(text[at:]) and 0 < len(token) - (len(text) - at) <= most for token in texts)
    ]
    assert settled_bytes(vocabulary, text, lambda rest: min(most, len(rest))) == min(
        covered, default=len(text)
    )


def test_at_the_end_of_the_language_nothing_is_held_back() -> None:
    vocabulary = jumping_vocabulary()
    automaton = choice("ab", "xab")
    end = follows_from(automaton, automaton.run(automaton.start, b"xab"))
    assert end(b"c") == 0
    assert retokenize(vocabulary, [], b"xab", follows=end) == (0, vocabulary.encode(b"xab"))
    assert retokenize(vocabulary, [], b"xab", follows=lambda rest: len(rest) if rest == b"c" else 0) == (
        0,
        [ord("x")],
    )
    assert (
        settled_bytes(
            Vocabulary("ff", (b"\xff", b"\xff\xff\xff", b""), (2,), {2: "</s>"}), b"\xff", lambda rest: 1
        )
        == 1
    )


def test_a_text_without_tokens_is_no_retokenization() -> None:
    with pytest.raises(ValueError, match="no token"):
        retokenize(Vocabulary("a", (b"a", b""), (1,), {1: "</s>"}), [0], b"b")


def test_a_real_tokenizers_own_ids_come_out() -> None:
    vocabulary = load_vocabulary("tekken")
    text = b'{"name": "Ada Lovelace", "city": "'
    rest = b"London"
    canonical = vocabulary.encode(text + rest)
    keep, ids = retokenize(vocabulary, spelled(vocabulary, random.Random(0), text[:9]), text[9:])
    assert (
        keep + len(ids) >= 10 and canonical[: len(ids)] == ids[:]
        if keep == 0
        else canonical[keep : keep + len(ids)] == ids
    )
    said = vocabulary.encode(text)
    assert retokenize(vocabulary, said[:3], vocabulary.decode(said[3:]), hold=False) == (3, said[3:])


# The adapter around an adapter


class UnjumpingObject(ReferenceObject):
    jump_forward = GrammarObject.jump_forward
    fast_forward_tokens = GrammarObject.fast_forward_tokens


class Unjumping(Reference):
    """Right, and without forced text; its dialects have an automaton."""

    dialects: ClassVar[frozenset[Dialect]] = frozenset({"regex", "choice"})
    object_class = UnjumpingObject


def test_it_keeps_the_contract() -> None:
    def other_than_passed(adapter: Adapter) -> dict[str, str]:
        found = {each.check: each.text for each in check_adapter(adapter) if each.status != "passed"}
        why = found.pop("each_id_of_end_of_sequence_ends_alike")
        assert why == "the vocabulary has one id of end-of-sequence"
        return found

    (held,) = other_than_passed(with_jump_map(Unjumping(small_vocabulary()))).items()
    assert held == (
        "fast_forward_tokens_are_accepted",
        "fast_forward_tokens finds nothing in the sample grammars",
    )  # ab may become abc
    assert set(other_than_passed(with_jump_map(Unjumping(byte_vocabulary())))) == {
        "special_and_padding_tokens_are_never_allowed"
    }
    assert {name for name in other_than_passed(Unjumping(byte_vocabulary())) if "forward" in name} == {
        "jump_forward_does_not_move",
        "jump_forward_bytes_are_forced",
        "fast_forward_does_not_move",
        "fast_forward_tokens_are_accepted",
    }


def test_it_says_what_the_automaton_says_wherever_the_object_goes() -> None:
    vocabulary = jumping_vocabulary()
    adapter = with_jump_map(Unjumping(vocabulary))
    grammar_object = adapter.compile(Grammar("choice", json.dumps(["yes, please", "yes, thanks"]))).start()
    assert grammar_object.jump_forward() == b"yes, "
    assert (
        vocabulary.decode(grammar_object.fast_forward_tokens()) == b"ye"
    )  # "s, p" is a token, and p may follow
    assert grammar_object.accept_tokens(vocabulary.encode(b"yes, thanksX")) == len(
        vocabulary.encode(b"yes, thanks")
    )
    assert grammar_object.jump_forward() == b"" and grammar_object.is_accepting()
    grammar_object.rollback(2)
    assert grammar_object.jump_forward() == b"ks"
    clone = grammar_object.copy()
    assert (
        clone.accept_token(ord("k"))
        and clone.jump_forward() == b"s"
        and grammar_object.jump_forward() == b"ks"
    )
    assert grammar_object.accept_tokens(vocabulary.encode(b"ks")) == 2
    assert grammar_object.accept_token(vocabulary.eos_token) and grammar_object.is_terminated()
    assert grammar_object.jump_forward() == b"" and grammar_object.fast_forward_tokens() == []
    grammar_object.rollback(3)
    assert grammar_object.jump_forward() == b"ks"


def test_it_does_not_claim_what_the_backend_cannot_do() -> None:
    class StuckObject(UnjumpingObject):
        rollback = GrammarObject.rollback
        copy = GrammarObject.copy  # type: ignore[assignment]

    class Stuck(Unjumping):
        object_class = StuckObject

    grammar = Grammar("choice", '["ab"]')
    can = with_jump_map(Unjumping(small_vocabulary())).compile(grammar).start()
    cannot = with_jump_map(Stuck(small_vocabulary())).compile(grammar).start()
    for method in ("rollback", "copy"):
        assert overrides(can, method) and not overrides(cannot, method)
    assert overrides(cannot, "jump_forward") and overrides(cannot, "fast_forward_tokens")
    with pytest.raises(NotImplementedError):
        cannot.rollback(1)


def test_without_an_automaton_the_backends_own_object_comes_back() -> None:
    def none(grammar: Grammar) -> Automaton[Any]:
        raise NoOracle("none")

    adapter = with_jump_map(Exact(byte_vocabulary()), none)
    assert type(adapter.compile(Grammar("choice", '["a"]')).start()).__name__ == "ExactObject"
    assert (
        type(
            with_jump_map(Exact(byte_vocabulary())).compile(Grammar("json_schema", '{"enum": [1]}')).start()
        ).__name__
        == "ExactObject"
    )


def test_an_automaton_that_grows_too_large_forces_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.oracle.automaton.MAX_STATES", 3)
    adapter = with_jump_map(Unjumping(byte_vocabulary()), lambda grammar: choice("abcdef"))
    assert adapter.compile(Grammar("choice", '["abcdef"]')).start().jump_forward() == b""


def test_where_the_backend_leaves_the_language_nothing_is_forced() -> None:
    adapter = with_jump_map(Unjumping(byte_vocabulary()), lambda grammar: choice("abc"))
    grammar_object = adapter.compile(Grammar("choice", '["abc", "xyz"]')).start()
    assert grammar_object.accept_token(ord("x"))
    assert grammar_object.jump_forward() == b"" and grammar_object.fast_forward_tokens() == []


def test_it_describes_itself_as_the_backend_and_fills_batches_with_it() -> None:
    class Batches(Unjumping):
        seen: list[type[GrammarObject]] = []  # noqa: RUF012

        def fill_bitmasks(self, objects: Any, bitmasks: Any) -> None:
            self.seen += [type(each) for each in objects]
            super().fill_bitmasks(objects, bitmasks)

    inner = Batches(small_vocabulary(), mask="bool")
    adapter: Adapter = with_jump_map(inner)
    assert (adapter.distribution, adapter.dialects, adapter.mask_format) == (
        inner.distribution,
        inner.dialects,
        "bool",
    )
    compiled = adapter.compile(Grammar("choice", '["ab", "cd"]'))
    words = allocate_bitmask(inner.vocabulary.size)
    adapter.fill_bitmasks([compiled.start(), compiled.start()], words.reshape(1, -1).repeat(2, 0))
    assert [each.__name__ for each in Batches.seen] == ["UnjumpingObject", "UnjumpingObject"]


@pytest.mark.parametrize("name", ["outlines_core", "lm_format_enforcer"])
def test_real_backends_without_forced_text_have_it_then(name: str) -> None:
    inner = load(name)(byte_vocabulary())
    grammar = Grammar("choice", '["left turn", "left over"]')
    plain, jumping = inner.compile(grammar).start(), with_jump_map(inner).compile(grammar).start()
    assert not overrides(plain, "jump_forward") and plain.jump_forward() == b""
    forced = jumping.jump_forward()
    assert forced == b"left " and jumping.accept_tokens(list(forced)) == len(forced)
    assert jumping.accept_token(ord("o")) and jumping.jump_forward() == b"ver"
    assert jumping.fast_forward_tokens() == list(b"ver")


# Ceilings


def along(language: Automaton[Any], vocabulary: Vocabulary, text: bytes) -> Ceilings:
    return ceilings(language, trie_of(vocabulary), vocabulary.encode(text))


def test_the_three_ceilings_counted_by_hand() -> None:
    language = choice("yes, please", "yes, thanks")
    # Over bytes every token is a byte; all but the one that chooses are forced, and canonical.
    assert along(language, byte_vocabulary(), b"yes, please") == Ceilings(11, 10, 11, 10, 10)
    # y|e|s, p|l|e|a|s|e: the choice falls inside the third token, so 10 of 11 bytes are forced, but its mask
    # has several tokens. Fast-forward puts out `y` and `e`, and leaves `s, ` to the model; after the choice
    # the rest, since no `e` becomes `e, ` there.
    vocabulary = jumping_vocabulary()
    assert vocabulary.encode(b"yes, please") == [
        121,
        101,
        vocabulary.ids_by_bytes[b"s, p"],
        108,
        101,
        97,
        115,
        101,
    ]
    assert along(language, vocabulary, b"yes, please") == Ceilings(8, 7, 11, 10, 7)


def test_the_end_is_no_step_and_a_refused_token_ends_the_output() -> None:
    language = choice("a", "ab")
    assert along(language, byte_vocabulary(), b"ab") == Ceilings(2, 1, 2, 1, 1)
    assert along(language, byte_vocabulary(), b"abc") == along(language, byte_vocabulary(), b"ab")
    trie = trie_of(byte_vocabulary())
    assert ceilings(language, trie, [97, 256, 98]) == Ceilings(1, 1, 1, 1, 1)
    assert ceilings(choice(), trie, [97]) == Ceilings()


def test_ceilings_add_up_and_nothing_has_no_share() -> None:
    total = Ceilings(4, 1, 10, 5, 2) + Ceilings(6, 1, 10, 0, 1)
    assert total == Ceilings(10, 2, 20, 5, 3)
    assert (total.singleton_share, total.forced_byte_share, total.fast_forward_share) == (0.2, 0.25, 0.3)
    nothing = Ceilings()
    assert (nothing.singleton_share, nothing.forced_byte_share, nothing.fast_forward_share) == (
        None,
        None,
        None,
    )


def test_the_ceilings_of_a_real_tokenizer_leave_the_tail_to_the_model() -> None:
    language = choice(*(f'{{"name": "{name}", "role": "admin"}}' for name in ("Ada", "Bob")))
    vocabulary = probe()
    text = b'{"name": "Bob", "role": "admin"}'
    gain = along(language, vocabulary, text)
    assert gain.bytes == len(text) and gain.forced_bytes == len(text) - 1
    assert 0 < gain.fast_forward < gain.steps == len(vocabulary.encode(text))
    assert gain == along(language, vocabulary, text)


def test_compiled_grammars_share_one_map() -> None:
    compiled = with_jump_map(Unjumping(byte_vocabulary())).compile(Grammar("choice", '["ab"]'))
    first, second = compiled.start(), compiled.start()
    assert isinstance(compiled, CompiledGrammar) and first is not second
    assert first.accept_token(97) and second.jump_forward() == b"ab" and first.jump_forward() == b"b"


def test_the_table_of_ceilings(tmp_path: Path) -> None:
    cases = [
        {
            "description": "all forced",
            "regex": "abcdef",
            "tests": [{"text": "abcdef", "valid": True}, {"text": "x", "valid": False}],
        },
        {"description": "half", "choice": ["aab", "bab"], "tests": [{"text": "aab", "valid": True}]},
        {
            "description": "forced in its layout",
            "schema": {"const": 1},
            "tests": [{"data": 1, "valid": True}],
        },
        {"description": "written otherwise", "schema": True, "tests": [{"text": "[\n1]", "valid": True}]},
        {
            "description": "no automaton",
            "schema": {"$ref": "http://x/"},
            "tests": [{"data": 1, "valid": True}],
        },
    ]
    (tmp_path / "three.json").write_text(json.dumps(cases))
    run = tmp_path / "run"
    asked = [
        str(tmp_path / "three.json"),
        "--backends",
        "unconstrained",
        "--vocabularies",
        "bytes",
        "--effort",
        "0",
        "--out",
        str(run),
    ]
    assert main(["run", *asked]) == 0
    assert ceiling_frame(run).to_dict("records") == [
        {"suite": "three", "vocabulary": "bytes", "outputs": 3, "steps": 10, "singleton_steps": "90.0%",
        "forced_bytes": "90.0%",
         "fast_forward_tokens": "90.0%"}
    ]  # fmt: skip
