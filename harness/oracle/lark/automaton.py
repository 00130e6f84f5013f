"""The reference automata of a Lark grammar."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness.oracle.automaton import Automaton, NoOracle
from harness.oracle.ebnf.automaton import automaton_of
from harness.oracle.ebnf.productions import Body, Builder, Productions
from harness.oracle.lark.lexemes import Lexemes, may_be_empty
from harness.oracle.lark.lexer import MAX_LEXEMES, LexerAutomaton
from harness.oracle.lark.syntax import START, read_lark
from harness.oracle.lark.tree import Either, Every, Expression, LarkGrammar, Literal, Name, Times
from harness.oracle.regex.automaton import RegexDialect, automaton_of_tree
from harness.oracle.regex.char_classes import unicode_version
from harness.oracle.regex.tree import Chars, Choice, Look, Node, Repeat, Sequence


def lark_automaton(
    text: str, dialect: RegexDialect = "python", unicode: str = "", lexer: bool = False
) -> Automaton[Any]:
    """Returns the automaton of a grammar in the form of docs/lark.md, with its regular expressions read in
    this dialect, by the tables of one version of Unicode (empty: the newest that is known).

    By itself a text is a sentence if it can be split into lexemes in any way; with `lexer`, if a lexer that
    takes each lexeme as long as possible splits it so. Raises NoOracle for a text that is not of the form,
    and for what has no reference or is too large.
    """
    grammar = read_lark(text)
    try:
        with unicode_version(unicode):
            return _by_lexer(grammar, dialect) if lexer else automaton_of(_over_characters(grammar, dialect))
    except RecursionError as why:
        raise NoOracle("the grammar is nested too deeply") from why


def _over_characters(grammar: LarkGrammar, dialect: RegexDialect) -> Productions:
    """Returns productions whose symbols are characters. After each lexeme stands what is ignored, any number
    of times."""
    lexemes, builder = Lexemes(grammar, dialect), Builder(START)
    ignored = [_body_of_tree(lexemes.node_of(expression), builder) for expression in grammar.ignored]
    skipped = builder.repeated(builder.choice(ignored), 0, None) if ignored else ()

    def body_of(lexeme: Expression) -> Body:
        node = _checked(lexemes.node_of(lexeme), grammar)
        key = ("lexeme", lexeme)
        return (builder.rule(key, (*_body_of_tree(node, builder), *skipped)),)

    return _productions(grammar, builder, body_of)


def _by_lexer(grammar: LarkGrammar, dialect: RegexDialect) -> LexerAutomaton:
    """Returns the automaton of a lexer, and of productions whose symbols are numbers of lexemes."""
    lexemes, builder = Lexemes(grammar, dialect), Builder(START)
    numbers: dict[Expression, int] = {}

    def body_of(lexeme: Expression) -> Body:
        number = numbers.setdefault(lexeme, len(numbers))
        if number == MAX_LEXEMES:
            raise NoOracle(f"the grammar has more than {MAX_LEXEMES} lexemes")
        symbol = builder.class_of(((number, number),))
        node = _checked(lexemes.node_of(lexeme), grammar)
        return builder.choice([(symbol,), ()]) if may_be_empty(node) else (symbol,)

    productions = _productions(grammar, builder, body_of)
    ignored = Choice(tuple(map(lexemes.node_of, grammar.ignored)))
    return LexerAutomaton(
        automaton_of(productions),
        [automaton_of_tree(lexemes.node_of(lexeme)) for lexeme in numbers],
        automaton_of_tree(ignored),
    )


def _checked(node: Node, grammar: LarkGrammar) -> Node:
    """Returns the tree of a lexeme. Raises NoOracle where nobody says whether something may be ignored after
    it."""
    if grammar.ignored and may_be_empty(node):
        raise NoOracle("a lexeme that may be empty, beside %ignore, has no reference")
    return node


def _productions(
    grammar: LarkGrammar, builder: Builder, body_of_lexeme: Callable[[Expression], Body]
) -> Productions:
    """Returns the productions of the rules, whose lexemes become what the function says."""

    def body_of(expression: Expression) -> Body:
        match expression:
            case Name() if expression.name in grammar.rules:
                return builder.grown((builder.rule(expression.name),))
            case Every():
                return sum(map(body_of, expression.parts), ())
            case Either():
                return builder.choice(list(map(body_of, expression.branches)))
            case Times():
                return builder.repeated(body_of(expression.body), expression.low, expression.high)
            case Literal() if not expression.text:
                return ()
        return builder.grown(body_of_lexeme(expression))

    for name, expression in grammar.rules.items():
        builder.define(name, [body_of(expression)])
    return builder.productions()


def _body_of_tree(node: Node, builder: Builder) -> Body:
    """Returns the body that derives what the tree of a regular expression matches."""
    match node:
        case Chars():
            return builder.grown((builder.class_of(node.ranges),))
        case Sequence():
            return sum((_body_of_tree(part, builder) for part in node.parts), ())
        case Choice():
            return builder.choice([_body_of_tree(branch, builder) for branch in node.branches])
        case Repeat():
            return builder.repeated(_body_of_tree(node.body, builder), node.low, node.high)
        case Look():
            raise NoOracle("a lookaround has no reference")
