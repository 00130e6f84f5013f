"""Makes candidates: everything that one step makes of a grammar, its instance and the tokens that the
vocabulary needs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from itertools import islice
from typing import Any

from harness.backend.grammar import Grammar
from harness.backend.tag_formats import has_format
from harness.cases.case import json_text
from harness.cases.subschemas import put
from harness.diagnose.shrink import patterns, schemas, values
from harness.diagnose.shrink.cut import content_cuts, cuts, holes, text_cuts
from harness.diagnose.shrink.lark import smaller_larks
from harness.diagnose.shrink.schemas import NOTHING
from harness.diagnose.shrink.tag_formats import smaller_formats


@dataclass(frozen=True)
class Candidate:
    """A grammar, an instance (None for none), and the tokens besides every byte (None for the run's own
    vocabulary)."""

    grammar: Grammar
    content: bytes | None
    words: tuple[bytes, ...] | None

    @property
    def size(self) -> tuple[int, int]:
        """Returns the size that a step must make smaller: the length of everything, then how far its
        characters lie from the first one."""
        grammar = self.grammar.text.encode("utf-8", "surrogatepass")
        parts = [grammar, self.content or b"", *(self.words or ())]
        return sum(map(len, parts)) + len(self.words or ()), sum(map(sum, parts))

    @property
    def digest(self) -> bytes:
        """Returns a few bytes that tell it from any other one, for whoever remembers thousands of them."""
        parts = self.grammar.dialect, self.grammar.text, self.content, self.words
        return sha256(ascii(parts).encode()).digest()


FIRST_DOCUMENTS = 200
"""How many smaller documents come before the steps of the grammar; the others come behind them."""

REPAIRS = 120
"""The most instances that are judged for a grammar which the present instance no longer fits."""

NO_GRAMMAR = (ValueError, LookupError, TypeError, AttributeError, RecursionError)
"""What is raised on the way through a text that is no grammar of its dialect, such as `{}` for choices."""

Step = Callable[[], Candidate]
"""A function that makes a candidate, so that it is written out only when its turn comes."""


def steps(now: Candidate) -> Iterator[Step]:
    """Yields every candidate that one step makes, the biggest steps first. Most are no smaller, no grammar,
    or no failure."""
    if now.content:
        yield partial(replace, now, content=b"")
    with suppress(*NO_GRAMMAR):
        yield from _plainer(now)
    # Before the rest of the grammar: most of these are not as valid as the first instance was, and cost no
    # trial. But a long text has more of them than there is time to judge.
    yield from _document_steps(now, 0, FIRST_DOCUMENTS)
    try:
        yield from _grammar_steps(now)
    except NO_GRAMMAR:
        yield from (_with_text(now, less) for less in text_cuts(now.grammar.text))
    yield from _document_steps(now, FIRST_DOCUMENTS, None)
    yield from (partial(replace, now, content=less) for less in content_cuts(now.content or b""))
    yield from (partial(replace, now, words=less) for less in cuts(now.words or ()))


def _document_steps(now: Candidate, begin: int, end: int | None) -> Iterator[Step]:
    """Yields the steps to some of the smaller documents, by their numbers."""
    documents = islice(smaller_documents(now.content or b""), begin, end)
    yield from (partial(replace, now, content=less) for less in documents)


def smaller_documents(content: bytes) -> Iterator[bytes]:
    """Yields JSON texts made from this one by one step and written in its style; none where it is no JSON."""
    with suppress(ValueError, RecursionError):
        value = values.parse(content)
        style = values.writers(content)
        yield values.write(value, *style)
        yield from (values.write(less, *style) for less in values.smaller_values(value))


def repairs(now: Candidate) -> Iterator[Candidate]:
    """Yields instances that might go with a grammar that has just lost something, at most REPAIRS: without a
    member, an element, a piece."""
    content = now.content or b""
    less = _documents_with_less(content) if now.grammar.dialect == "json_schema" else holes(content)
    yield from (replace(now, content=smaller) for smaller in islice(less, REPAIRS))


def _documents_with_less(content: bytes) -> Iterator[bytes]:
    with suppress(ValueError, RecursionError):
        value = values.parse(content)
        style = values.writers(content)
        yield from (values.write(less, *style) for less in values.with_a_part_less(value))


def _plainer(now: Candidate) -> Iterator[Step]:
    if now.grammar.dialect == "json_schema":
        instance, style = _read(now.content)
        for schema, part in schemas.plainer_schemas(values.parse(now.grammar.text), instance):
            yield partial(_with_schema, now, schema, NOTHING if part is instance else part, style)


def _grammar_steps(now: Candidate) -> Iterator[Step]:
    text = now.grammar.text
    match now.grammar.dialect:
        case "json_schema":
            instance, style = _read(now.content)
            for schema, part in schemas.smaller_schemas(values.parse(text), instance):
                yield partial(_with_schema, now, schema, NOTHING if part is instance else part, style)
        case "regex":
            yield from (_with_text(now, less) for less in patterns.smaller_regexes(text))
        case "ebnf":
            yield from (_with_text(now, less) for less in patterns.smaller_grammars(text))
        case "lark":
            yield from (_with_text(now, less) for less in smaller_larks(text))
        case "choice":
            yield from _choice_steps(now, values.parse(text))
        case "structural_tag":
            yield from _tag_steps(now, values.parse(text))


def _read(content: bytes | None) -> tuple[Any, tuple[bool, bool]]:
    try:
        return values.parse(content or b""), values.writers(content or b"")
    except (ValueError, RecursionError):
        return NOTHING, (False, False)


def _with_text(now: Candidate, text: str) -> Step:
    return partial(replace, now, grammar=Grammar(now.grammar.dialect, text))


def _with_schema(now: Candidate, schema: Any, part: Any, style: tuple[bool, bool]) -> Candidate:
    content = now.content if part is NOTHING else values.write(part, *style)
    return replace(now, grammar=Grammar("json_schema", json_text(schema)), content=content)


def _choice_steps(now: Candidate, choices: list[str]) -> Iterator[Step]:
    yield from (_with_text(now, json_text(list(less))) for less in cuts(choices) if less)
    for number, choice in enumerate(choices):
        for less in text_cuts(choice):
            text = json_text([*choices[:number], less, *choices[number + 1 :]])
            if now.content == choice.encode("utf-8", "surrogatepass"):
                yield partial(
                    replace,
                    now,
                    grammar=Grammar("choice", text),
                    content=less.encode("utf-8", "surrogatepass"),
                )
            yield _with_text(now, text)


def _tag_steps(now: Candidate, form: dict[str, Any]) -> Iterator[Step]:
    if has_format(form):
        yield from (_with_text(now, json_text(less)) for less in smaller_formats(form))
        return
    for key in ("structures", "triggers"):
        yield from (_with_text(now, json_text({**form, key: list(less)})) for less in cuts(form[key]) if less)
    for number, structure in enumerate(form["structures"]):
        for schema, _ in schemas.smaller_schemas(structure["schema"], NOTHING):
            yield _with_text(now, json_text(put(form, ("structures", number, "schema"), schema)))
    texts = [
        *form["triggers"],
        *(structure[key] for structure in form["structures"] for key in ("begin", "end")),
    ]
    for text in dict.fromkeys(texts):
        for less in text_cuts(text):
            if less:
                yield partial(_with_mark, now, form, text, less)


def _with_mark(now: Candidate, form: dict[str, Any], old: str, new: str) -> Candidate:
    """Returns the candidate with a trigger, a begin or an end shortened wherever it stands, in the instance
    as well."""
    triggers = [trigger.replace(old, new) for trigger in form["triggers"]]
    structures = [
        {
            **structure,
            "begin": structure["begin"].replace(old, new),
            "end": structure["end"].replace(old, new),
        }
        for structure in form["structures"]
    ]
    text = json.dumps({**form, "triggers": triggers, "structures": structures}, ensure_ascii=False)
    content = now.content.replace(old.encode(), new.encode()) if now.content is not None else None
    return replace(now, grammar=Grammar("structural_tag", text), content=content)
