"""Schemas with a layout, and grammars of their documents in that layout that were written by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from harness.backend.layout import EVERY_SPELLING, LAYOUTS, Layout, with_delete_escaped
from harness.oracle.utf8 import LAST

RULES = r"""
digits ::= [0-9]+
integer ::= "0" | [1-9] [0-9]*
plain-number ::= "0" | "-"? [1-9] [0-9]* | "-"? integer "." [0-9]* [1-9]
plain-char ::= [^"\\\x00-\x1F] | "\\" ["\\bfnrt] | "\\u00" ("0" [0-7bef] | "1" [0-9a-f])
plain-string ::= "\"" plain-char* "\""
hex ::= [0-9a-fA-F]
unit ::= "\\u" ([0-9a-cA-CefEF] hex hex hex | [dD] [0-7] hex hex) | "\\u" [dD] [89abAB] hex hex "\\u" [dD] [c-fC-F] hex hex
any-char ::= [^"\\\x00-\x1F] | "\\" ["\\/bfnrt] | unit
ws ::= [ \t\n\r]*
compact ::= "null" | "true" | "false" | plain-number | plain-string | compact-array | compact-object
compact-array ::= "[" (compact ("," compact)*)? "]"
compact-object ::= "{" (compact-member ("," compact-member)*)? "}"
compact-member ::= plain-string ":" compact
a ::= "a" | "\\u0061"
b ::= "b" | "\\u0062"
c ::= "c" | "\\u0063"
"""  # noqa: E501

PRINTABLE = ((0x20, 0x21), (0x23, 0x5B), (0x5D, 0x7E))
"""The characters of ASCII that may stand in a string."""
NO_CONTROLS = (*PRINTABLE, (0xA0, LAST))
COMPACT, SPACED = LAYOUTS["compact"], LAYOUTS["spaced"]
TIGHT = replace(EVERY_SPELLING, longest_run=0, is_surrounded=False)
LITERAL = replace(TIGHT, short_escapes=b"", hex_escapes=())
NO_EXPONENT = replace(TIGHT, exponents="none")
NULL = {"type": "null"}
STRICT = replace(LITERAL, unlisted="never", further_items=False)
BARE = r'''bare ::= "null" | "true" | "false" | number | string | "[" (bare ("," bare)*)? "]" | "{}"
number ::= "-"? integer ("." digits)? ([eE] [+\-]? digits)?
string ::= "\"" [^"\\\x00-\x1F]* "\""'''
"""A value of which no subschema lists a name, in the layout LITERAL."""
TWO_NAMES = {
    "type": "object",
    "properties": {"b": {"type": "null"}, "a": {"const": True}},
    "required": ["a"],
    "additionalProperties": False,
}
ABC = {
    "type": "object",
    "properties": {"b": {"type": "null"}, "a": {"type": "null"}},
    "additionalProperties": {"const": True},
    "propertyNames": {"enum": ["a", "b", "c"]},
}

B_AND_A = {
    "allOf": [
        {"type": "object", "properties": {"b": NULL}},
        {"properties": {"a": NULL}, "required": ["c"], "propertyNames": {"enum": ["a", "b", "c"]}},
    ]
}
OBJECT = {"type": "object"}
B, D = ({"type": "object", "properties": {name: NULL}} for name in "bd")
CLOSED = replace(LITERAL, order="listed", unlisted="never")
"""Nothing but listed names, in their order."""
ASKED = replace(LITERAL, unlisted="asked")
"""Names that nothing asks for are left out."""
A_OR_C = {**OBJECT, "propertyNames": {"enum": ["a", "c"]}, "properties": {"a": NULL}}
AGREED = replace(LITERAL, order="listed", alternatives_agree=True)
A_OR_BA = {
    "anyOf": [
        {"type": "object", "properties": {"a": NULL}, "required": ["a"], "additionalProperties": False},
        {"type": "object", "properties": {"b": NULL, "a": NULL}, "additionalProperties": False},
    ]
}
"""A library that writes each alternative in its own order never has `a` before `b`."""
A_OR_B = {
    "propertyNames": {"enum": ["a", "b"]},
    "anyOf": [
        {"type": "object", "properties": {"a": NULL}, "required": ["a"]},
        {"type": "object", "properties": {"b": NULL}, "required": ["b"]},
    ],
}

PAIRS: list[tuple[Any, Layout, str]] = [
    (True, COMPACT, "compact"),
    ({"type": "number"}, COMPACT, "plain-number"),
    ({"type": "string"}, COMPACT, "plain-string"),
    (TWO_NAMES, COMPACT, r'"{" "\"b\":null,"? "\"a\":true}"'),
    (TWO_NAMES, SPACED, r'"{" "\"b\": null, "? "\"a\": true}"'),
    # Required names before others; among alternatives no name is required.
    (TWO_NAMES, replace(COMPACT, order="required_first"), r'"{" "\"a\":true" ",\"b\":null"? "}"'),
    ({"anyOf": [TWO_NAMES, {"const": {"b": None}}]}, replace(COMPACT, order="required_first"),
     r'"{" ("\"b\":null" | "\"b\":null,"? "\"a\":true") "}"'),
    (TWO_NAMES, with_delete_escaped(replace(COMPACT, order="any")),
     r'"{" ("\"b\":null,\"a\":true" | "\"a\":true" ",\"b\":null"?) "}"'),
    ({"type": "string"}, with_delete_escaped(COMPACT),
     r'"\"" ([^"\\\x00-\x1F\x7F] | "\\" ["\\bfnrt] | "\\u00" ("0" [0-7bef] | "1" [0-9a-f] | "7f"))* "\""'),
    ({"type": "array", "items": {"enum": [None, 1]}}, SPACED,
     '"[" (item (", " item)*)? "]"\nitem ::= "null" | "1"'),
    # White space in runs of at most one blank; only around the document; never around it.
    ({"type": "array", "items": {"const": True}}, Layout(whitespace=b" ", longest_run=1, is_surrounded=False),
     '"[" " "? ("true" " "? ("," " "? "true" " "?)*)? "]"'),
    (TWO_NAMES, replace(LITERAL, longest_run=2, whitespace=b" \n"),
     r'"{" s (a-first | b-first) s "}"' "\n"
     r'a-first ::= a-member (s "," s b-member)?' "\n" r'b-first ::= b-member s "," s a-member' "\n"
     r'a-member ::= "\"a\"" s ":" s "true"' "\n" r'b-member ::= "\"b\"" s ":" s "null"' "\n"
     r's ::= [ \n]? [ \n]?'),
    ({"type": "array", "maxItems": 0}, replace(SPACED, is_surrounded=True), 'ws "[]" ws'),
    ({"type": ["array", "null"], "maxItems": 0}, Layout(is_surrounded=False), '"[" ws "]" | "null"'),
    # The order of names, and where those stand that the schema does not list.
    (TWO_NAMES, replace(TIGHT, order="listed"), r'"{" ("\"" b "\":null,")? "\"" a "\":true}"'),
    (ABC, replace(LITERAL, order="listed"),
     r'"{" (b-first | a-first | c ("," (c-behind))? )? "}"' "\n"
     r'c ::= "\"c\":true"' "\n" r'c-behind ::= c ("," c-behind)? | b-first | a-first' "\n"
     r'b-first ::= "\"b\":null" ("," (c-or-a))?' "\n" r'c-or-a ::= c ("," c-or-a)? | a-first' "\n"
     r'a-first ::= "\"a\":null" ("," c)*'),
    (ABC, replace(LITERAL, unlisted="last"),
     r'"{" (listed ("," c)* | c ("," c)*)? "}"' "\n" r'c ::= "\"c\":true"' "\n"
     r'a-member ::= "\"a\":null"' "\n" r'b-member ::= "\"b\":null"' "\n"
     r'listed ::= a-member ("," b-member)? | b-member ("," a-member)?'),
    (ABC, replace(LITERAL, unlisted="never", order="listed"),
     r'"{" ("\"b\":null" ",\"a\":null"? | "\"a\":null")? "}"'),
    # Names on whose order the alternatives agree.
    (A_OR_BA, replace(LITERAL, order="listed"), r'"{" ("\"a\":null" ",\"b\":null"? | "\"b\":null")? "}"'),
    (A_OR_BA, AGREED, r'"{" ("\"b\":null" ",\"a\":null"? | "\"a\":null")? "}"'),
    ({"anyOf": [TWO_NAMES, {"type": "object", "properties": {"b": NULL}, "additionalProperties": False}]},
     replace(AGREED, order="required_first"), r'"{" ("\"b\":null" | "\"a\":true" ",\"b\":null"?)? "}"'),
    (A_OR_B, AGREED, r'"{" ("\"a\":null" | "\"b\":null") "}"'),
    # Lists that hold together come as they are applied; which of them comes first is agreed on by nobody.
    (B_AND_A, replace(LITERAL, order="listed", unlisted="never"),
     r'"{" "\"b\":null,"? "\"a\":null,"? "\"c\":" value "}"' "\n" + BARE.replace("bare", "value")),
    (B_AND_A, replace(AGREED, unlisted="never"),
     r'"{" ("\"b\":null," | "\"a\":null,")? "\"c\":" value "}"' "\n" + BARE.replace("bare", "value")),
    ({**OBJECT, "$defs": {"base": D, "r": {"$ref": "#/$defs/base"}}, "allOf": [{"$ref": "#/$defs/r"}, B],
      "properties": {"a": NULL}}, CLOSED,
     r'"{" ("\"d\":null" ",\"b\":null"? ",\"a\":null"? | "\"b\":null" ",\"a\":null"? | "\"a\":null")? "}"'),
    ({**OBJECT, "properties": {"a": NULL}, "$ref": "#/$defs/base", "$defs": {"base": D}}, CLOSED,
     r'"{" ("\"a\":null" ",\"d\":null"? | "\"d\":null")? "}"'),
    # Where one comes first here and the other there, the text of the schema has it: b before d.
    ({**OBJECT, "maxProperties": 2, "allOf": [B, {"$ref": "#/$defs/base"}], "$defs": {"base": D},
      "properties": {"a": {"allOf": [{"$ref": "#/$defs/base"}, B], "maxProperties": 0}}}, CLOSED,
     r'"{" ("\"b\":null" (",\"d\":null" | ",\"a\":{}")? | "\"d\":null" (",\"a\":{}")? | "\"a\":{}")? "}"'),
    ({"type": "object", "properties": {"a": {"type": "array", "items": {"type": "object",
      "properties": {"b": {"type": "null"}}}}, "c": {"type": "object", "minProperties": 1}}},
     replace(LITERAL, unlisted="never"),
     r'"{" ("\"a\":[" (item ("," item)*)? "]")? "}"' "\n" r'item ::= "{" "\"b\":null"? "}"'),
    # What is listed at one place of an array is not at another; items that no subschema speaks of.
    ({"type": "array", "prefixItems": [{"properties": {"a": NULL}, "type": "object"},
      {"type": "object", "properties": {"b": NULL}}]}, replace(LITERAL, unlisted="never", whitespace=b""),
     r'"[" ("{" "\"a\":null"? "}" (",{" "\"b\":null"? "}" ("," bare)*)?)? "]"' "\n" + BARE),
    ({"type": "array", "prefixItems": [NULL, NULL]}, STRICT, r'"[" ("null" ",null"?)? "]"'),
    ({"type": "array", "prefixItems": [NULL], "items": NULL}, STRICT, r'"[" ("null" (",null")*)? "]"'),
    ({"type": "array", "items": NULL}, STRICT, r'"[" ("null" (",null")*)? "]"'),
    ({"properties": {"a": {"type": "array", "prefixItems": [NULL]}}, "type": "object"}, STRICT,
     r'"{" ("\"a\":[" "null"? "]")? "}"'),
    # Characters.
    ({"type": "string"}, replace(LITERAL, raw=PRINTABLE),
     r'"\"" [^"\\\x00-\x1F\x7F-\U0010FFFF]* "\""'),
    ({"enum": ["aé", "a", 'a"', "\x7f"]}, replace(LITERAL, raw=PRINTABLE),
     r'"\"a\""'),
    ({"type": "string"}, replace(TIGHT, hex_escapes=(), raw=NO_CONTROLS),
     r'"\"" ([^"\\\x00-\x1F\x7F-\x9F] | "\\" ["\\/bfnrt])* "\""'),
    ({"const": "\x85"}, replace(TIGHT, raw=NO_CONTROLS), r'"\"\\u0085\""'),
    ({"type": "string", "pattern": "^[\x80-\xa1]*$"},
     replace(LITERAL, raw=NO_CONTROLS, hex_escapes=((0x80, 0x9F),), hex_digits="lower"),
     r'"\"" ([\xA0\xA1] | "\\u00" [89] [0-9a-f])* "\""'),
    ({"type": "string", "pattern": "^[\x80-\xa1]*$"}, replace(LITERAL, raw=((0x61, 0x61), (0xA0, LAST))),
     r'"\"" [\xA0\xA1]* "\""'),
    ({"type": "string", "maxLength": 1},
     replace(LITERAL, hex_escapes=((0x1F600, 0x1F64F),), hex_digits="lower"),
     r'"\"" ([^"\\\x00-\x1F] | "\\ud83d\\ude" [0-4] [0-9a-f])? "\""'),
    ({"type": "string", "maxLength": 1},
     replace(LITERAL, raw=(), hex_escapes=((0x7F, 0x80), (0xFFFF, 0x10000))),
     r'"\"" ("\\u00" ("7" f | "80") | "\\u" f f f f | "\\u" d "800\\u" d [cC] "00")? "\""' "\n"
     r"f ::= [fF]" "\n" r"d ::= [dD]"),
    ({"type": "object", "required": ["a"], "propertyNames": {"maxLength": 1},
      "additionalProperties": {"const": 1}},
     replace(COMPACT, raw=((0x61, 0x62),), short_escapes=b"", hex_escapes=()),
     r'"{\"a\":1" (",\"" b? "\":1")* "}"' "\n" r'b ::= "b"'),
    # Numbers.
    ({"type": "number"}, replace(TIGHT, exponents="signed"),
     r'"-"? integer ("." digits)? ([eE] [+\-] digits)?'),
    ({"type": "number", "minimum": 0, "maximum": 1}, NO_EXPONENT,
     r'"-0" ("." "0"+)? | "0" ("." digits)? | "1" ("." "0"+)?'),
    ({"type": "number", "exclusiveMinimum": -12, "maximum": -1.5}, NO_EXPONENT,
     r'"-1." ([5-9] [0-9]*) | "-" [2-9] ("." digits)? | "-1" [01] ("." digits)?'),
    ({"type": "number", "multipleOf": 0.5}, NO_EXPONENT, r'"-"? integer ("." [05] "0"*)?'),
    ({"type": "number", "multipleOf": 0.5},
     replace(NO_EXPONENT, has_minus_zero=False, integers_are_digits=True),
     r'"0" | "-"? [1-9] [0-9]* | "-"? integer ".5" "0"*'),
    ({"type": "integer", "minimum": -1, "maximum": 12}, replace(TIGHT, integers_are_digits=True),
     r'"-"? [01] | [2-9] | "1" [0-2]'),
    ({"type": "number", "exclusiveMinimum": -1, "maximum": 0}, replace(NO_EXPONENT, has_minus_zero=False),
     r'"0" ("." "0"+)? | "-0." [0-9]* [1-9] [0-9]*'),
    ({"type": "number", "multipleOf": 0.25, "minimum": 0}, COMPACT, r'integer ("." ("25" | "5" | "75"))?'),
    ({"enum": [1.5, -0.25, 2.0]}, COMPACT, r'"1.5" | "-0.25" | "2"'),
    ({"type": "number", "minimum": 1.5, "exclusiveMaximum": 1.51}, COMPACT, r'"1.5" ("0" [0-9]* [1-9])?'),
    ({"type": "number", "minimum": 10.5, "maximum": 10.5}, COMPACT, r'"10.5"'),
    # Names that are not listed, and that a pattern or a keyword for all others asks for.
    (ABC, ASKED,
     r'"{" (listed ("," c)* | c ("," c)*)? "}"' "\n" r'c ::= "\"c\":true"' "\n"
     r'a-member ::= "\"a\":null"' "\n" r'b-member ::= "\"b\":null"' "\n"
     r'listed ::= a-member ("," b-member)? | b-member ("," a-member)?'),
    ({**OBJECT, "patternProperties": {"^x?$": B}, "additionalProperties": False}, ASKED,
     r'"{" (x ("," x)*)? "}"' "\n" r'x ::= "\"" "x"? "\":{" "\"b\":null"? "}"'),
    ({**OBJECT, "properties": {"a": NULL}, "patternProperties": {"^x?$": NULL}}, ASKED,
     r'"{" ("\"a\":null" ("," x)* | x ("," x)*)? "}"' "\n" r'x ::= "\"" "x"? "\":null"'),
    ({**A_OR_C, "unevaluatedProperties": {"const": True}}, ASKED,
     r'"{" ("\"a\":null" ("," c)* | c ("," c)*)? "}"' "\n" r'c ::= "\"c\":true"'),
    ({"type": "array", "prefixItems": [A_OR_C, {**A_OR_C, "additionalProperties": True}, OBJECT],
      "items": False},
     ASKED,
     r'"[" ("{" "\"a\":null"? "}" (",{" ("\"a\":null" ("," c)* | c ("," c)*)? "}" (",{}")?)?)? "]"' "\n"
     r'c ::= "\"c\":" bare' "\n" + BARE),
    ({**A_OR_C, "properties": {"a": {"enum": [True, None]}}, "not": {"additionalProperties": NULL}}, ASKED,
     r'"{\"a\":true}"'),
]  # fmt: skip
