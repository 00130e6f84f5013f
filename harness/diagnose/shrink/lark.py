"""Makes smaller Lark grammars by dropping alternatives, items, counts and definitions from the tree of the
form of docs/lark.md.

Whether the result is a grammar is judged elsewhere; a text that is not of the form is cut as text."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace

from harness.diagnose.shrink.cut import cuts, text_cuts
from harness.diagnose.shrink.patterns import smaller_regexes
from harness.oracle.automaton import NoOracle
from harness.oracle.ebnf.gbnf import operator
from harness.oracle.lark.syntax import START, read_lark
from harness.oracle.lark.tree import (
    Either,
    Every,
    Expression,
    LarkGrammar,
    Literal,
    Name,
    Pattern,
    Span,
    Times,
)


def smaller_larks(text: str) -> Iterator[str]:
    """Yields grammars made from this one by one step, the biggest steps first; then with pieces of its text
    cut out."""
    try:
        grammar = read_lark(text)
    except NoOracle:
        pass
    else:
        for number, smaller in enumerate(_smaller(grammar)):
            written = write_lark(smaller)
            if number or len(written) < len(text):
                yield written
    yield from text_cuts(text)


def write_lark(grammar: LarkGrammar) -> str:
    """Returns the text of the definitions that `start` and `%ignore` need, each on a line."""
    bodies = {**grammar.rules, **grammar.terminals}
    reached, waiting = {START}, [grammar.rules[START], *grammar.ignored]
    while waiting:
        new = _names(waiting.pop()) - reached
        reached |= new
        waiting += [bodies[name] for name in new if name in bodies]
    return "\n".join(
        [
            *(f"{name}:{_written(body, top=True)}" for name, body in bodies.items() if name in reached),
            *(f"%ignore{_written(expression, top=True)}" for expression in grammar.ignored),
        ]
    )


def _smaller(grammar: LarkGrammar) -> Iterator[LarkGrammar]:
    yield grammar  # without comments, layout and what nobody needs
    for less in cuts(grammar.ignored):
        yield replace(grammar, ignored=less)
    for name, body in grammar.rules.items():
        if name != START:
            yield replace(grammar, rules={**grammar.rules, START: body})
    for rules in _with_one_smaller(grammar.rules):
        yield replace(grammar, rules=rules)
    for terminals in _with_one_smaller(grammar.terminals):
        yield replace(grammar, terminals=terminals)
    for number, expression in enumerate(grammar.ignored):
        for smaller in _smaller_expressions(expression):
            ignored = (*grammar.ignored[:number], smaller, *grammar.ignored[number + 1 :])
            yield replace(grammar, ignored=ignored)
    yield from _with_names_written_out(grammar)


def _with_one_smaller(definitions: Mapping[str, Expression]) -> Iterator[Mapping[str, Expression]]:
    for name, body in definitions.items():
        yield from ({**definitions, name: smaller} for smaller in _smaller_expressions(body))


def _with_names_written_out(grammar: LarkGrammar) -> Iterator[LarkGrammar]:
    """Yields the grammar with each name but `start` replaced by its definition, unless that names it."""
    for name, body in {**grammar.terminals, **grammar.rules}.items():
        if name != START and name not in _names(body):
            yield LarkGrammar(
                {other: _replaced(each, name, body) for other, each in grammar.rules.items()},
                {other: _replaced(each, name, body) for other, each in grammar.terminals.items()},
                tuple(_replaced(each, name, body) for each in grammar.ignored),
            )


def _smaller_expressions(expression: Expression) -> Iterator[Expression]:
    match expression:
        case Every():
            yield from expression.parts
            yield from map(Every, cuts(expression.parts))
            for number, part in enumerate(expression.parts):
                for less in _smaller_expressions(part):
                    yield Every((*expression.parts[:number], less, *expression.parts[number + 1 :]))
        case Either():
            yield from expression.branches
            yield from (Either(less) for less in cuts(expression.branches) if less)
            for number, branch in enumerate(expression.branches):
                for less in _smaller_expressions(branch):
                    yield Either((*expression.branches[:number], less, *expression.branches[number + 1 :]))
        case Times():
            yield expression.body
            yield from (replace(expression, body=less) for less in _smaller_expressions(expression.body))
            for low, high in ((0, 1), (0, None), (expression.low // 2, expression.low // 2 + 1)):
                yield replace(expression, low=low, high=high)
        case Literal():
            yield from (replace(expression, text=less) for less in text_cuts(expression.text))
            if expression.folds:
                yield replace(expression, folds=False)
        case Span():
            yield Literal(expression.first)
        case Pattern():
            yield from (
                replace(expression, pattern=less) for less in smaller_regexes(expression.pattern) if less
            )
            if expression.flags:
                yield replace(expression, flags="")


def _names(expression: Expression) -> set[str]:
    match expression:
        case Name():
            return {expression.name}
        case Every():
            return set().union(*map(_names, expression.parts))
        case Either():
            return set().union(*map(_names, expression.branches))
        case Times():
            return _names(expression.body)
    return set()


def _replaced(expression: Expression, name: str, body: Expression) -> Expression:
    match expression:
        case Name() if expression.name == name:
            return body
        case Every():
            return Every(tuple(_replaced(part, name, body) for part in expression.parts))
        case Either():
            return Either(tuple(_replaced(branch, name, body) for branch in expression.branches))
        case Times():
            return replace(expression, body=_replaced(expression.body, name, body))
    return expression


def _written(expression: Expression, top: bool = False) -> str:
    """Returns the expression's text with a blank in front; only at the top without parentheses."""
    match expression:
        case Name():
            return f" {expression.name}"
        case Literal():
            return f" {json.dumps(expression.text, ensure_ascii=False)}{'i' * expression.folds}"
        case Span():
            ends = [json.dumps(end, ensure_ascii=False) for end in (expression.first, expression.last)]
            return f" {'..'.join(ends)}"
        case Pattern():
            return f" /{expression.pattern.replace('/', chr(92) + '/')}/{expression.flags}"
        case Every():
            text = "".join(map(_written, expression.parts))
        case Either():
            text = " |".join(_written(branch, isinstance(branch, Every)) for branch in expression.branches)
        case Times():
            body = _written(expression.body)
            if isinstance(expression.body, Times):
                body = f" ({body.strip()})"
            return body + operator(expression.low, expression.high)
    return text if top else f" ({text.strip()})"
