"""The formats and the numbers of JSON Schema as automata, held against the judge on mutated texts."""

from __future__ import annotations

import json
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.oracle.automaton import NoOracle
from harness.oracle.json_schema.automaton import json_schema_automaton
from harness.oracle.judge.schema import document_is_valid
from harness.oracle.judge.unjudgeable import Unjudgeable

ALPHABET = '0123456789:.-+TtZzAafFg@[]"\\/ ?#%~PYMWDS_é'
LONG = 4 * ("a" * 60 + ".")
TEXTS = {
    "date": ["2020-02-29", "2021-02-29", "1900-02-29", "0000-01-01", "0000-02-29",
             "0004-02-29", "0100-02-29"],
    "date-time": ["1990-12-31T15:59:60-08:00", "1963-06-19t08:30:06.283185z", "2020-02-30T00:00:00Z"],
    "duration": ["P1Y2M3DT4H5M6S", "P1W", "P1Y1D", "PT"],
    "email": ["a@b.c", '"a b"@x.y', "a@[127.0.0.1]", "a@[IPv6:::1]",
              '"\\"!"@x', "a@[ipV6:::1]", "a@[::1]",
              "a@[IPv6:1.2.3.4]", "a@[1.2.3.256]", "a..b@c", "a@" + LONG + "a" * 10],
    "hostname": ["a.b", "-a.b", "a" * 63, "a" * 64, LONG + "a" * 9, LONG + "a" * 10],
    "ipv4": ["1.2.3.4", "01.2.3.4", "255.256.0.1"],
    "ipv6": ["::", "1:2:3:4:5:6:7::", "::ffff:1.2.3.4", "1::2:3:4:5:6:7", "fe80::1%eth0", "1::2::3"],
    "json-pointer": ["/a~0/b", "/a~2", "a"],
    "time": ["23:59:60Z", "22:59:60-01:00", "00:29:60.5+00:30", "22:15:60-01:44", "12:00:00"],
    "uri": ["http://u:p@a.b:80/c?d#e", "http://[::1]/", "urn:x:y", "//a", "http://[::g]", "http://[1.2.3.4]",
            "a://[v1.a]"],
    "uri-reference": ["//h/x?q#f", "1a:b", "a%20b", "a%2"],
    "uuid": ["2EB8AA08-AA98-11EA-B4AA-73B441D16380", "2EB8AA08AA9811EAB4AA73B441D16380"],
}  # fmt: skip


def mutated(random: Random, text: str) -> str:
    """The text with one or two characters replaced, inserted or left out."""
    characters = list(text)
    for _ in range(random.randint(1, 2)):
        place = random.randrange(len(characters) + 1)
        end = place + random.randint(0, 1)
        characters[place:end] = random.choice(("", random.choice(ALPHABET)))
    return "".join(characters)


@pytest.mark.parametrize("name", TEXTS)
def test_a_format_is_what_the_judge_says(name: str) -> None:
    random = Random(name)
    schema = json.dumps({"type": "string", "format": name})
    automaton = json_schema_automaton(schema, None, True)
    texts = [text for seed in TEXTS[name] for text in (seed, *(mutated(random, seed) for _ in range(60)))]
    truths = []
    for text in texts:
        document = json.dumps(text).encode()
        try:
            truth = document_is_valid(schema, document, None, True)
        except Unjudgeable:
            continue
        truths.append(truth)
        assert automaton.accepts(document) == truth, text
        if truth:
            assert automaton.viable(document) == len(document), text
    assert {True, False} == {*truths}


def test_a_format_is_an_annotation_unless_it_is_asserted() -> None:
    assert json_schema_automaton('{"format": "date"}').accepts(b'"x"')
    assert json_schema_automaton('{"format": "unheard-of"}', None, True).accepts(b'"x"')
    for name in ("regex", "iri"):
        with pytest.raises(NoOracle, match=name):
            json_schema_automaton(json.dumps({"format": name}), None, True)


BOUNDS = st.sampled_from([0, 1, -1, 5, 10, 12, 100, 250, 0.5, 0.25, -3.75, 1e3, 99, 1e-3, 120])
NUMBER_SCHEMAS = st.fixed_dictionaries(
    {},
    optional={
        "minimum": BOUNDS,
        "exclusiveMaximum": BOUNDS,
        "maximum": BOUNDS,
        "multipleOf": st.sampled_from([1, 2, 3, 0.01, 0.5, 5, 20, 12, 0.75, 7, 1.5]),
        "type": st.sampled_from(["integer", "number"]),
    },
)
NUMBERS = st.from_regex(r"-?(0|[1-9][0-9]{0,5})(\.[0-9]{1,5})?([eE][+-]?[0-9]{1,2})?", fullmatch=True)


@settings(max_examples=300, deadline=None)
@given(NUMBER_SCHEMAS, st.lists(NUMBERS, min_size=1, max_size=12), st.booleans())
def test_a_number_in_any_form_is_what_the_judge_says(
    wanted: dict[str, object], texts: list[str], is_negated: bool
) -> None:
    schema = json.dumps({"type": "number", "not": wanted} if is_negated else wanted)
    automaton = json_schema_automaton(schema)  # one for all texts: literals that go on alike are one state
    for text in texts:
        truth = document_is_valid(schema, text.encode(), None, False)
        assert automaton.accepts(text.encode()) == truth, (schema, text)
        if truth:
            assert automaton.viable(text.encode()) == len(text), (schema, text)


def test_a_long_number_needs_few_states() -> None:
    automaton = json_schema_automaton('{"type": "integer", "minimum": 0, "maximum": 1000000}')
    for number in range(0, 1_000_000, 997):
        assert automaton.accepts(str(number).encode())
    assert len(automaton) < 400
