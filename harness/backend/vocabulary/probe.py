"""A small synthetic vocabulary made of hard cases."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, pairwise, product

from harness.backend.vocabulary.model import Vocabulary

# First and last of each UTF-8 length and around the surrogates, letters of several scripts, emoji, joiners,
# odd white space, SentencePiece's marker.
_CHARACTERS = (
    "\u0080\u00a0éßñçüя\u0301\u05d0\u0634\u07ff"
    "\u0800日本語中文在线ぁんアーรन！€…“”▁\u200d\u2028\u3000\ud7ff\ue000\ufe0f\ufeff\ufffd\uffff"
    "\U00010000𝄞😀😁👍👩💻🇫🇷𠮷\U0010ffff"
)

# Bytes that never make a character: overlong, surrogate, beyond U+10FFFF, continuation alone, cut short.
_MALFORMED = (
    "c080", "c1bf", "e08080", "e09fbf", "eda080", "edbfbf", "f0808080", "f4908080", "f5808080", "8080",
    "bfbf", "ffff", "fe80", "e2c3",
    "f09fe2",
)  # fmt: skip

_WORDS = """
    name id type value items item properties title description age email address status date time url count data result error message
    user users list true false null object array string number integer boolean required enum key city country street phone first last
    price total tags query location unit celsius role content function arguments tool parameters created updated version cat dog red
    green blue abc hello world the and of to in is yes no a b c x y i
"""  # noqa: E501

_STRUCTURE = (
    '": ', '": "', '": [', '": {', '": -', '": 1', '": t', '": null', '", "', '", ', '"},{"', '"}, {"',
    '"}]}', '"]}', "}}}", "]]]",
    "}}}}", '":[{"', '"}],"',
    '":""', '":"",', '""', '"",""', "[[[[", '{"":', "[]}", "{}]", "{},", "[],", "1,", "1}", "1]", ",1", "[1",
    "0,0", "true,", "true}",
    "false]", "null,",
    " {", " [", " }", " ]", ' "', '" ', " :", ": ", " ,", ", ", ": {", "{ ", "[ ", '{ "', ",\n", ",\n\n",
    ', \n', ',\n"', '",\n',
    '",\n  "', "{\n", '{\n  "', "[\n", "\n}", "\n]",
    '"\n}', '"\n]', "}\n", "]\n", "}\n\n", "},\n", "},\n  {", '":\n', "()", "(", "):", "=>", "->", "//", "/*",
    "<!--", "```",
    "```json\n", "|", "||", "^", "$", ".*", "\\d", "\\w+",
)  # fmt: skip

_ESCAPES = (
    "\\\\", '\\"', "\\/", "\\b", "\\n", "\\t", "\\u", "\\u0", "\\u00", "\\u0000", "\\u00e9", "\\ud83d",
    "\\ude00", "\\ud83d\\ude00",
    "d83d", '\\\\"',
    '"\\', '"\\\\', '\\""', '"\\"', "\\\\\\", "\\x", "u0041", '\\",', '\\"}',
)  # fmt: skip

_NUMBERS = (
    "-0", "-1", "-12", "-.", "0.", "0.0", "0.5", ".5", ".0", ".25", "1.", "1.5", "-0.5", "-0.0", "3.14159",
    "e+", "e-", "E+", "E-",
    "e0", "e10", "1e", "1e5", "1E5", "0e", "5e-",
    "+1", "--", "1-", "0x", "1_000", "1,000", "0000", "00000000", "1234", "12345678", "2024", "2024-", "-01-",
    "T00:", ":00Z", "127.0.",
    "9007199254740993", "NaN", "Infinity",
)  # fmt: skip

_LIKE_SPECIALS = (
    "</s>", "<s>", "<pad>", "<unk>", "<tool_call>", "</tool_call>", "<|endoftext|>", "<|im_end|>", "[INST]",
    "<0x0A>", "<0xE6>", "</",
    "s>", "<|", "|>",
)  # fmt: skip

_LONG = (
    "a" * 200, " " * 256, "\n" * 200, "=" * 300, "0" * 255, '{"a":' * 50, "[" * 200, "日本語" * 80, "😀" * 64,
    "lorem ipsum " * 20,
    "-" * 1000,  # more than 1024 bytes would shut out a backend that panics on them
)  # fmt: skip

_TWICE = ('"', "{", "}", " ", "\n", "a", "1", "true", '":', '"}', "日", "😀", "name")

_PADDING_TO = 5
"""What the size leaves over a multiple of 32."""


def probe_vocabulary() -> Vocabulary:
    """Returns a few thousand tokens, the same on every machine; tokenizes by longest match.

    Every byte; every piece of characters of 2, 3 and 4 bytes, and pieces of two neighbours; malformed UTF-8;
    tokens across JSON's boundaries; escapes, numbers, white space; two ids with the same bytes; an empty
    token; text that reads like a special; tokens of up to 1 kB; specials at both ends; padding; a size that
    is no multiple of 32.
    """
    single = {text: None for text in _texts() if text}
    texts = [*single, *(text.encode() for text in _TWICE), b"\xe6", b"\x80", b""]
    front, back = ("<s>", "<pad>"), ("</s>", "<tool_call>", "</tool_call>")
    used = len(front) + len(texts) + len(back)
    padding = (_PADDING_TO - used) % 32 + 32
    return Vocabulary(
        name="probe",
        tokens=(*(b"" for _ in front), *texts, *(b"" for _ in back), *(b"" for _ in range(padding))),
        eos_tokens=(len(front) + len(texts),),
        special_tokens=dict(enumerate(front)) | dict(enumerate(back, len(front) + len(texts))),
        padding_tokens=frozenset(range(used, used + padding)),
    )


def _texts() -> Iterator[bytes]:
    yield from (bytes([byte]) for byte in range(256))
    yield from _characters()
    yield from map(bytes.fromhex, _MALFORMED)
    yield from map(str.encode, _plain_texts())


def _characters() -> Iterator[bytes]:
    characters = [character.encode() for character in _CHARACTERS]
    for character in characters:
        yield character
        yield from _pieces(character)
        yield from (
            character * 2,
            character * 4,
            b'"' + character,
            character + b'"',
            b" " + character,
            character + b'":',
        )
    for left, right in pairwise(characters):
        yield left + right
        for tail, head in product(range(1, len(left)), range(1, len(right))):
            yield left[-tail:] + right[:head]
    for first in characters:
        yield from (b'"' + first[:1], b'"' + first[:-1], b" " + first[:-1], b"a" + first[:1])
        yield from (first[-1:] + b'"', first[1:] + b'"', first[-1:] + b'"}')
    yield from (
        "👩\u200d💻".encode(),
        "e\u0301".encode(),
        "日本語".encode(),
        "在线".encode(),
        "！！！".encode(),
    )


def _pieces(character: bytes) -> Iterator[bytes]:
    """Yields every proper prefix, suffix and middle of two bytes or more."""
    for start in range(len(character)):
        for end in range(start + 2, len(character) + 1):
            if end - start < len(character):
                yield character[start:end]


def _plain_texts() -> Iterable[str]:
    punctuation = '{}[]":,'
    letters = "etaoinshrdlu"
    return chain(
        ("".join(pair) for pair in product(punctuation, repeat=2)),
        ("".join(triple) for triple in product(punctuation, repeat=3)),
        _STRUCTURE,
        _ESCAPES,
        chain.from_iterable(map(_spellings, _WORDS.split())),
        ("".join(pair) for pair in product(letters, repeat=2)),
        (f"{number:02}" for number in range(100)),
        (f"{number:03}" for number in range(1000)),
        _NUMBERS,
        (" " * count for count in (*range(2, 17), 32, 64)),
        ("\n" * count for count in range(2, 5)),
        ("\t" * count for count in range(2, 9)),
        ("\n" + " " * count for count in range(1, 17)),
        ("\n" + "\t" * count for count in range(1, 5)),
        ("\r\n", "\r\n\r\n", " \n", "\t ", " \t", "\v", "\f", " \r\n"),
        _LIKE_SPECIALS,
        _LONG,
    )


def _spellings(word: str) -> tuple[str, ...]:
    return (
        word,
        f" {word}",
        f'"{word}',
        f'{word}"',
        f'"{word}"',
        f'"{word}":',
        word.capitalize(),
        word.upper(),
    )
