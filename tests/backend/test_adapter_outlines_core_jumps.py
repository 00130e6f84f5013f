"""outlines-core with a compressed finite state machine beside it: what is forced."""

from __future__ import annotations

import numpy as np
import pytest

from harness.backend.grammar import Adapter, Dialect, Grammar, allocate_bitmask
from harness.backend.registry import make, parse_spec
from harness.backend.vocabulary import byte_vocabulary

pytest.importorskip("outlines_core")

SCHEMA = (
    '{"type": "object", "properties": {"name": {"const": "a"}, "size": {"type": "integer"}}, '
    '"required": ["name", "size"]}'
)


def adapter(options: str = "") -> Adapter:
    return make(parse_spec(f"outlines-core:jumps=compressed_fsm{options}"), byte_vocabulary())


@pytest.mark.parametrize(
    ("dialect", "text", "after", "forced"),
    [
        ("json_schema", SCHEMA, b"", b'{"name":"a","size":'),
        ("json_schema", SCHEMA, b'{"na', b'me":"a","size":'),
        ("json_schema", SCHEMA, b'{"name":"a","size":1', b""),
        ("regex", "(😀|😁)+", b"", b"\xf0\x9f\x98"),
        ("regex", "(😀|😁)+", b"\xf0\x9f\x98\x80", b""),
        ("regex", "[^ab]cd", b"", b""),
        ("regex", "[a-z&&[^b-z]]bc", b"", b"abc"),
        ("choice", '["left", "lend"]', b"", b"le"),
    ],
)
def test_jumps_as_far_as_its_own_regular_expression_forces(
    dialect: Dialect, text: str, after: bytes, forced: bytes
) -> None:
    grammar_object = adapter(":whitespace=compact").compile(Grammar(dialect, text)).start()
    assert all(grammar_object.accept_token(byte) for byte in after)
    assert grammar_object.jump_forward() == forced
    assert all(grammar_object.accept_token(byte) for byte in forced)


def test_a_pattern_without_an_automaton_is_compiled_all_the_same() -> None:
    grammar_object = adapter().compile(Grammar("regex", "(?-u)ab")).start()
    assert all(grammar_object.accept_token(byte) for byte in b"ab") and grammar_object.is_accepting()
    assert adapter().compile(Grammar("regex", "(?-u)ab")).start().jump_forward() == b""
    assert adapter().compile(Grammar("regex", "(?x)a b")).start().jump_forward() == b"ab"


def test_a_batch_is_filled_past_the_jumps() -> None:
    backend = adapter()
    objects = [backend.compile(Grammar("regex", pattern)).start() for pattern in ("ab", "b+", "[^a]")]
    rows = np.zeros((3, len(allocate_bitmask(backend.vocabulary.size))), dtype=np.int32)
    backend.fill_bitmasks(objects, rows)
    for row, grammar_object in zip(rows, objects, strict=True):
        alone = allocate_bitmask(backend.vocabulary.size)
        grammar_object.fill_bitmask(alone)
        assert (row == alone).all()


def test_without_the_option_nothing_is_said_to_be_forced() -> None:
    grammar_object = (
        make(parse_spec("outlines-core"), byte_vocabulary()).compile(Grammar("regex", "abc")).start()
    )
    assert grammar_object.jump_forward() == b""
