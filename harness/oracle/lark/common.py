"""The terminals of `%import common`, as both libraries that docs/lark.md is about build them in.

Their pages give the names and no patterns; these are those of cpp/lark_converter.cc in the one and of
parser/src/lark/common.rs in the other. Lark's own differ: there, a string ends on its line.
"""

_DIGITS = "[0-9]+"
_POINT = r"[0-9]+\.[0-9]*|\.[0-9]+"
_EXPONENT = r"[eE](?:\+|-)?[0-9]+"
_FLOAT = f"(?:{_POINT})(?:{_EXPONENT})?|{_DIGITS}{_EXPONENT}"
_SIGN = r"(?:\+|-)?"

COMMON = {
    "DIGIT": "[0-9]",
    "HEXDIGIT": "[a-fA-F0-9]",
    "INT": _DIGITS,
    "SIGNED_INT": _SIGN + _DIGITS,
    "DECIMAL": _POINT,
    "_EXP": _EXPONENT,
    "FLOAT": _FLOAT,
    "SIGNED_FLOAT": f"{_SIGN}(?:{_FLOAT})",
    "NUMBER": f"{_DIGITS}|{_FLOAT}",
    "SIGNED_NUMBER": f"{_SIGN}(?:{_DIGITS}|{_FLOAT})",
    "ESCAPED_STRING": r'"(?:[^"\\]|\\.)*"',
    "LCASE_LETTER": "[a-z]",
    "UCASE_LETTER": "[A-Z]",
    "LETTER": "[A-Za-z]",
    "WORD": "[A-Za-z]+",
    "CNAME": "[_A-Za-z][_A-Za-z0-9]*",
    "WS_INLINE": r"[ \t]+",
    "WS": r"[ \t\f\r\n]+",
    "CR": r"\r",
    "LF": r"\n",
    "NEWLINE": r"(?:\r?\n)+",
    "SH_COMMENT": r"#[^\n]*",
    "CPP_COMMENT": r"//[^\n]*",
    "C_COMMENT": r"/\*[^*]*\*+(?:[^/*][^*]*\*+)*/",
    "SQL_COMMENT": r"--[^\n]*",
}
"""The pattern of each terminal, by its name."""
