"""Small random Lark grammars, and their texts by definition: sets of strings, without an automaton.

A grammar is made as a value and written as text in one of the spellings of docs/lark.md; the sets are
computed from the value, so that reader and automaton are both under test. The words of a regular expression
are those that `re` matches.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from itertools import product
from random import Random

from all_texts import all_texts

LETTERS = "ab\n"
LONGEST = 4
"""Characters of the texts that are compared."""
AHEAD = 6
"""Characters of the longest words of a lexeme that are enumerated, to see what may still come."""
LEXEMES = 4
"""Most lexemes of a grammar."""

Language = frozenset[str]

PATTERNS = ("a+", "[ab]", "ab?", "(?:ab|b)", "b{1,2}", "[^b]", "a*b", "[ab]+", ".b", "(?:a|b){2}")
IGNORED = (r"\n", r"\n+", r"(?:\n|b)", r"\na?")


@dataclass(frozen=True)
class Words:
    """A lexeme: a text, a range or an expression, or a terminal with a name."""

    spelling: str
    words: Language


@dataclass(frozen=True)
class Part:
    """`kind` is `all`, `any`, `rule` (whose name is `of`) or `times`."""

    kind: str
    parts: tuple[Part | Words, ...] = ()
    of: str = ""
    low: int = 0
    high: int | None = None


@dataclass(frozen=True)
class Made:
    rules: dict[str, Part | Words]
    ignored: Language
    text: str

    @property
    def has_no_reference(self) -> bool:
        """Nobody says what may be ignored behind a lexeme that is empty (docs/lark.md)."""
        return bool(self.ignored) and any(
            "" in lexeme.words and lexeme.spelling != '""' for lexeme in self.lexemes
        )

    @property
    def lexemes(self) -> list[Words]:
        found: dict[Words, None] = {}

        def collect(part: Part | Words) -> None:
            if isinstance(part, Words):
                found[part] = None
            else:
                for inner in part.parts:
                    collect(inner)

        for body in self.rules.values():
            collect(body)
        return list(found)


def texts(longest: int, letters: str = LETTERS) -> list[str]:
    """Returns every text of these letters."""
    return all_texts(letters, longest)


@cache
def matching(pattern: str) -> Language:
    """Returns the texts that `re` matches as a whole."""
    return frozenset(text for text in texts(AHEAD) if re.fullmatch(pattern, text))


def random_grammar(random: Random, for_lark: bool = False) -> Made:
    """Returns a grammar of up to three rules. `for_lark` leaves out what Lark itself has not."""
    terminals: dict[str, Words] = {}

    def literal() -> Words:
        text = random.choice(
            ("a", "b", "ab", "ba", "aab", "\n") if for_lark else ("a", "b", "ab", "ba", "aab", "\n", "")
        )
        if random.random() < 0.15 and text.strip():
            words = frozenset("".join(each) for each in product(*({low, low.upper()} for low in text)))
            return Words(f'"{text.upper()}"i', words)
        spelled = json.dumps(text)
        if random.random() < 0.2:
            spelled = '"' + "".join(f"\\u{ord(character):04x}" for character in text) + '"'
        return Words(spelled, frozenset({text}))

    def lexeme() -> Words:
        kind = random.random()
        if kind < 0.45:
            return literal()
        if kind < 0.75 or not terminals:
            pattern = random.choice(PATTERNS)
            return Words(f"/{pattern}/", matching(pattern))
        if kind < 0.85:
            return Words('"a".."b"', frozenset("ab"))
        return random.choice(list(terminals.values()))

    for name in random.sample(["ONE", "_TWO", "X-3" if not for_lark else "X_3"], random.randrange(3)):
        terminals[name] = _terminal(random, name, lexeme, for_lark)
    bodies = [f"{name}: {_DEFINITIONS[name]}" for name in terminals]
    pool = [lexeme() for _ in range(LEXEMES)]
    names = ["start", "one", "_two"][: random.randrange(1, 4)]

    def part(depth: int) -> Part | Words:
        kind = random.random()
        if depth == 0 or kind < 0.4:
            return Part("rule", of=random.choice(names)) if random.random() < 0.25 else random.choice(pool)
        if kind < 0.65:
            return Part("all", tuple(part(depth - 1) for _ in range(random.randrange(1, 4))))
        if kind < 0.85:
            branches = [part(depth - 1) for _ in range(random.randrange(2, 4))]
            if random.random() < 0.2:
                branches.append(Part("all"))
            return Part("any", tuple(branches))
        low = random.randrange(3)
        high = random.choice((None, low, low + 1, low + 2) if low < 2 else (low, low + 1))
        if for_lark and high == 0:
            high = 1
        return Part("times", (part(depth - 1),), low=low, high=high)

    rules = {name: part(3) for name in names}
    bodies += [
        random.choice(("", "?", "!")) * (name != "_two")
        + f"{name}:{_written(body, random, for_lark, top=True)}"
        for name, body in rules.items()
    ]
    random.shuffle(bodies)
    ignored: Language = frozenset()
    if random.random() < 0.5:
        pattern = random.choice(IGNORED[:2] if for_lark else IGNORED)  # Lark ignores as much as it can
        ignored = matching(pattern)
        bodies.append(f"%ignore /{pattern}/" if pattern != r"\n" else r'%ignore "\n"')
    comment = random.choice(("", " // a", " # b" if not for_lark else "", "\n"))
    return Made(rules, ignored, "\n".join(body + comment for body in bodies) + "\n")


_DEFINITIONS: dict[str, str] = {}


"""What defines each terminal of the grammar that is being made."""


def _terminal(random: Random, name: str, lexeme: Callable[[], Words], for_lark: bool) -> Words:
    """Returns a named terminal; what defines it is kept by its name."""
    kind = 0 if for_lark else random.randrange(4)  # of two, Lark's expression prefers one
    one, other = lexeme(), lexeme()
    if kind == 0:
        spelling, words = one.spelling, one.words
    elif kind == 1:
        spelling, words = f"{one.spelling} | {other.spelling}", one.words | other.words
    elif kind == 2:
        spelling = f"{one.spelling} {other.spelling}"
        words = joined(one.words, other.words, AHEAD)
    else:
        count = random.choice(("+", "~1..2") if for_lark else ("+", "{1,2}", "~1..2"))
        spelling = f"({one.spelling} | {other.spelling}){count}"
        either = one.words | other.words
        words = (
            closed(either, AHEAD) - {""} | (either & {""})
            if "+" in count
            else either | joined(either, either, AHEAD)
        )
    _DEFINITIONS[name] = spelling
    return Words(name, words)


def _written(part: Part | Words, random: Random, for_lark: bool, top: bool = False) -> str:
    """Returns a part's text, with a blank in front."""
    if isinstance(part, Words):
        return f" {part.spelling}"
    if part.kind == "rule":
        return f" {part.of}"
    inner = [_written(each, random, for_lark) for each in part.parts]
    if part.kind == "all":
        return "".join(inner) if top else f" ({''.join(inner)})"
    if part.kind == "any":
        if top:
            return random.choice((" |", "\n  |")).join(inner)
        return f" ({' |'.join(inner)})"
    if (part.low, part.high) == (0, 1) and random.random() < 0.5:
        return f" [{inner[0]}]"
    return f" ({inner[0]}){_count(part.low, part.high, random, for_lark)}"


def _count(low: int, high: int | None, random: Random, for_lark: bool) -> str:
    plain = {(0, None): "*", (1, None): "+", (0, 1): "?"}
    if (low, high) in plain and (for_lark or random.random() < 0.7):
        return plain[low, high]
    if high is None:
        return f"{{{low},}}" if not for_lark else f"~{low}..9"
    if for_lark or random.random() < 0.5:
        return f"~{low}" if low == high else f"~{low}..{high}"
    return f"{{{low}}}" if low == high else f"{{{low or ''},{high}}}"


def joined(one: Iterable[str], other: Iterable[str], longest: int) -> Language:
    """Returns each of the one followed by each of the other, where that is not too long."""
    by_length = [[word for word in other if len(word) <= most] for most in range(longest + 1)]
    return frozenset(
        first + second for first in one if len(first) <= longest for second in by_length[longest - len(first)]
    )


def closed(words: Iterable[str], longest: int) -> Language:
    """Returns any number of the words, one after the other."""
    found, new = {""}, {""}
    pieces = [word for word in words if word]
    while new:
        new = {text + word for text in new for word in pieces if len(text) + len(word) <= longest} - found
        found |= new
    return frozenset(found)


def _within(inner: list[Language], part: Part, longest: int) -> Language:
    """Returns the words of a part from those of its parts."""
    if part.kind == "any":
        return frozenset().union(*inner)
    result: Language = frozenset({""})
    if part.kind == "all":
        for each in inner:
            result = joined(result, each, longest)
        return result
    for _ in range(part.low):
        result = joined(result, inner[0], longest)
    if part.high is None:
        return joined(result, closed(inner[0], longest), longest)
    for _ in range(part.high - part.low):
        result |= joined(result, inner[0], longest)
    return result


def sentences(made: Made, words_of: Callable[[Words], Language], longest: int) -> dict[str, Language]:
    """Returns the words of each rule, none longer than that, when each lexeme stands for these words."""
    known: dict[str, Language] = dict.fromkeys(made.rules, frozenset())

    def of(part: Part | Words) -> Language:
        if isinstance(part, Words):
            return words_of(part)
        return known[part.of] if part.kind == "rule" else _within(list(map(of, part.parts)), part, longest)

    while (after := {name: of(body) for name, body in made.rules.items()}) != known:
        known = after
    return known


def beginnings(made: Made, words_of: Callable[[Words], Language], longest: int) -> Language:
    """Returns the beginnings, none longer than that, of the words of `start`, which may be of any length."""
    whole = sentences(made, words_of, longest)
    can_end: set[str] = set()

    def ends(part: Part | Words) -> bool:
        if isinstance(part, Words):
            return bool(words_of(part))
        if part.kind == "rule":
            return part.of in can_end
        if part.kind == "any":
            return any(map(ends, part.parts))
        return (part.kind == "times" and part.low == 0) or all(map(ends, part.parts))

    while more := {name for name, body in made.rules.items() if name not in can_end and ends(body)}:
        can_end |= more
    known: dict[str, Language] = dict.fromkeys(made.rules, frozenset())

    def full(part: Part | Words) -> Language:
        if isinstance(part, Words):
            return words_of(part)
        return whole[part.of] if part.kind == "rule" else _within(list(map(full, part.parts)), part, longest)

    def of(part: Part | Words) -> Language:
        if not ends(part):
            return frozenset()
        if isinstance(part, Words):
            return frozenset(word[:end] for word in words_of(part) for end in range(len(word) + 1))
        if part.kind == "rule":
            return known[part.of]
        if part.kind == "any":
            return frozenset().union(*map(of, part.parts))
        before: Language = frozenset({""})
        found = before
        if part.kind == "all":
            for each in part.parts:
                found |= joined(before, of(each), longest)
                before = joined(before, full(each), longest)
            return found
        for _ in range(longest + part.low if part.high is None else part.high):
            found |= joined(before, of(part.parts[0]), longest)
            before = joined(before, full(part.parts[0]), longest)
        return found

    while (after := {name: of(body) for name, body in made.rules.items()}) != known:
        known = after
    return known["start"]


def by_any_split(made: Made) -> Language:
    """Returns the sentences of up to LONGEST characters when a text may be split into lexemes in any way."""
    return sentences(made, _words_with_ignored(made, LONGEST), LONGEST)["start"]


def beginnings_by_any_split(made: Made) -> Language:
    """Returns the texts of up to LONGEST characters that such a sentence, of any length, begins with."""
    return beginnings(made, _words_with_ignored(made, AHEAD), LONGEST)


def _words_with_ignored(made: Made, longest: int) -> Callable[[Words], Language]:
    skipped = closed(made.ignored, longest)

    @cache
    def words_of(lexeme: Words) -> Language:
        if lexeme.spelling == '""':
            return frozenset({""})
        return joined((word for word in lexeme.words if len(word) <= longest), skipped, longest)

    return words_of


def by_lexer(made: Made) -> Language:
    """Returns the sentences of up to LONGEST characters of a lexer that takes each lexeme as long as it can,
    read off the definition in docs/lark.md: each text is run through it by itself."""
    lexemes = [lexeme for lexeme in made.lexemes if lexeme.spelling != '""']
    letters = {lexeme: chr(0x41 + number) for number, lexeme in enumerate(lexemes)}

    def letter_of(lexeme: Words) -> Language:
        if lexeme.spelling == '""':
            return frozenset({""})
        return frozenset({letters[lexeme]} | ({""} if "" in lexeme.words else set()))

    of_lexemes = sentences(made, letter_of, LONGEST)["start"]
    begun = beginnings(made, letter_of, LONGEST + 1)
    prefixes = {
        lexeme: {word[:end] for word in lexeme.words for end in range(1, len(word) + 1)} for lexeme in lexemes
    }
    skips = {word[:end] for word in made.ignored for end in range(1, len(word) + 1)}

    def accepted(text: str) -> bool:
        read, start = {""}, 0  # the sequences of lexemes before `start`
        while start < len(text):
            allowed = [
                lexeme for lexeme in lexemes if any(before + letters[lexeme] in begun for before in read)
            ]
            may_skip = bool(allowed) and start > 0
            end = start
            while end < len(text) and (
                any(text[start : end + 1] in prefixes[lexeme] for lexeme in allowed)
                or (may_skip and text[start : end + 1] in skips)
            ):
                end += 1
            word = text[start:end]
            if not word:
                return False
            after = {
                before + letters[lexeme]
                for before in read
                for lexeme in allowed
                if word in lexeme.words and before + letters[lexeme] in begun
            }
            if may_skip and word in made.ignored:
                after |= read
            read, start = after, end
        return any(before in of_lexemes for before in read)

    return frozenset(text for text in texts(LONGEST) if accepted(text))
