"""Since which version of Unicode a character is assigned, and from that which version a library's tables are
of.

A class such as `\\w` has other members in each version: the characters that were assigned since. That a
library was built before the newest version is no fault of it, and not what a grammar says; what its classes
would have been then is told here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache

from harness.backend.grammar import Adapter, Grammar
from harness.errors import OutOfTime

Ranges = tuple[tuple[int, int], ...]

_ASSIGNED = {
    "10.0": (
        "860-86A 9FC-9FD AFA-AFF D00 D3B-D3C 1CF7 1DF6-1DF9 20BF 23FF 2BD2 2E45-2E49 312E 9FD6-9FEA "
        "1032D-1032F 11A00-11A47 "
        "11A50-11A83 11A86-11A9C 11A9E-11AA2 11D00-11D06 11D08-11D09 11D0B-11D36 11D3A 11D3C-11D3D "
        "11D3F-11D47 11D50-11D59 16FE1 "
        "1B002-1B11E 1B170-1B2FB 1F260-1F265 1F6D3-1F6D4 1F6F7-1F6F8 1F900-1F90B 1F91F 1F928-1F92F "
        "1F931-1F932 1F94C 1F95F-1F96B "
        "1F992-1F997 1F9D0-1F9E6 2CEB0-2EBE0"
    ),
    "11.0": (
        "560 588 5EF 7FD-7FF 8D3 9FE A76 C04 C84 1878 1C90-1CBA 1CBD-1CBF 2BBA-2BBC 2BD3-2BEB 2BF0-2BFE "
        "2E4A-2E4E 312F 9FEB-9FEF "
        "A7AF A7B8-A7B9 A8FE-A8FF 10A34-10A35 10A48 10D00-10D27 10D30-10D39 10F00-10F27 10F30-10F59 110CD "
        "11144-11146 1133B 1145E "
        "1171A 11800-1183B 11A9D 11D60-11D65 11D67-11D68 11D6A-11D8E 11D90-11D91 11D93-11D98 11DA0-11DA9 "
        "11EE0-11EF8 16E40-16E9A "
        "187ED-187F1 1D2E0-1D2F3 1D372-1D378 1EC71-1ECB4 1F12F 1F6F9 1F7D5-1F7D8 1F94D-1F94F 1F96C-1F970 "
        "1F973-1F976 1F97A "
        "1F97C-1F97F 1F998-1F9A2 1F9B0-1F9B9 1F9C1-1F9C2 1F9E7-1F9FF 1FA60-1FA6D"
    ),
    "12.0": (
        "C77 E86 E89 E8C E8E-E93 E98 EA0 EA8-EA9 EAC EBA 1CFA 2BC9 2BFF 2E4F A7BA-A7BF A7C2-A7C6 AB66-AB67 "
        "10FE0-10FF6 1145F "
        "116B8 119A0-119A7 119AA-119D7 119DA-119E4 11A84-11A85 11FC0-11FF1 11FFF 13430-13438 16F45-16F4A "
        "16F4F 16F7F-16F87 "
        "16FE2-16FE3 187F2-187F7 1B150-1B152 1B164-1B167 1E100-1E12C 1E130-1E13D 1E140-1E149 1E14E-1E14F "
        "1E2C0-1E2F9 1E2FF 1E94B "
        "1ED01-1ED3D 1F16C 1F6D5 1F6FA 1F7E0-1F7EB 1F90D-1F90F 1F93F 1F971 1F97B 1F9A5-1F9AA 1F9AE-1F9AF "
        "1F9BA-1F9BF 1F9C3-1F9CA "
        "1F9CD-1F9CF 1FA00-1FA53 1FA70-1FA73 1FA78-1FA7A 1FA80-1FA82 1FA90-1FA95"
    ),
    "12.1": ("32FF"),
    "13.0": (
        "8BE-8C7 B55 D04 D81 1ABF-1AC0 2B97 2E50-2E52 31BB-31BF 4DB6-4DBF 9FF0-9FFC A7C7-A7CA A7F5-A7F6 "
        "A82C AB68-AB6B 1019C "
        "10E80-10EA9 10EAB-10EAD 10EB0-10EB1 10FB0-10FCB 11147 111CE-111CF 1145A 11460-11461 11900-11906 "
        "11909 1190C-11913 "
        "11915-11916 11918-11935 11937-11938 1193B-11946 11950-11959 11FB0 16FE4 16FF0-16FF1 18AF3-18CD5 "
        "18D00-18D08 1F10D-1F10F "
        "1F16D-1F16F 1F1AD 1F6D6-1F6D7 1F6FB-1F6FC 1F8B0-1F8B1 1F90C 1F972 1F977-1F978 1F9A3-1F9A4 "
        "1F9AB-1F9AD 1F9CB 1FA74 "
        "1FA83-1FA86 1FA96-1FAA8 1FAB0-1FAB6 1FAC0-1FAC2 1FAD0-1FAD6 1FB00-1FB92 1FB94-1FBCA 1FBF0-1FBF9 "
        "2A6D7-2A6DD 30000-3134A"
    ),
    "14.0": (
        "61D 870-88E 890-891 898-89F 8B5 8C8-8D2 C3C C5D CDD 170D 1715 171F 180F 1AC1-1ACE 1B4C 1B7D-1B7E "
        "1DFA 20C0 2C2F 2C5F "
        "2E53-2E5D 9FFD-9FFF A7C0-A7C1 A7D0-A7D1 A7D3 A7D5-A7D9 A7F2-A7F4 FBC2 FD40-FD4F FDCF FDFE-FDFF "
        "10570-1057A 1057C-1058A "
        "1058C-10592 10594-10595 10597-105A1 105A3-105B1 105B3-105B9 105BB-105BC 10780-10785 10787-107B0 "
        "107B2-107BA 10F70-10F89 "
        "11070-11075 110C2 116B9 11740-11746 11AB0-11ABF 12F90-12FF2 16A70-16ABE 16AC0-16AC9 1AFF0-1AFF3 "
        "1AFF5-1AFFB 1AFFD-1AFFE "
        "1B11F-1B122 1CF00-1CF2D 1CF30-1CF46 1CF50-1CFC3 1D1E9-1D1EA 1DF00-1DF1E 1E290-1E2AE 1E7E0-1E7E6 "
        "1E7E8-1E7EB 1E7ED-1E7EE "
        "1E7F0-1E7FE 1F6DD-1F6DF 1F7F0 1F979 1F9CC 1FA7B-1FA7C 1FAA9-1FAAC 1FAB7-1FABA 1FAC3-1FAC5 "
        "1FAD7-1FAD9 1FAE0-1FAE7 "
        "1FAF0-1FAF6 2A6DE-2A6DF 2B735-2B738"
    ),
    "15.0": (
        "CF3 ECE 10EFD-10EFF 1123F-11241 11B00-11B09 11F00-11F10 11F12-11F3A 11F3E-11F59 1342F 13439-13455 "
        "1B132 1B155 "
        "1D2C0-1D2D3 1DF25-1DF2A 1E030-1E06D 1E08F 1E4D0-1E4F9 1F6DC 1F774-1F776 1F77B-1F77F 1F7D9 "
        "1FA75-1FA77 1FA87-1FA88 "
        "1FAAD-1FAAF 1FABB-1FABD 1FABF 1FACE-1FACF 1FADA-1FADB 1FAE8 1FAF7-1FAF8 2B739 31350-323AF"
    ),
    "15.1": ("2FFC-2FFF 31EF 2EBF0-2EE5D"),
    "16.0": (
        "897 1B4E-1B4F 1B7F 1C89-1C8A 2427-2429 31E4-31E5 A7CB-A7CD A7DA-A7DC 105C0-105F3 10D40-10D65 "
        "10D69-10D85 10D8E-10D8F "
        "10EC2-10EC4 10EFC 11380-11389 1138B 1138E 11390-113B5 113B7-113C0 113C2 113C5 113C7-113CA "
        "113CC-113D5 113D7-113D8 "
        "113E1-113E2 116D0-116E3 11BC0-11BE1 11BF0-11BF9 11F5A 13460-143FA 16100-16139 16D40-16D79 18CFF "
        "1CC00-1CCF9 1CD00-1CEB3 "
        "1E5D0-1E5FA 1E5FF 1F8B2-1F8BB 1F8C0-1F8C1 1FA89 1FA8F 1FABE 1FAC6 1FADC 1FADF 1FAE9 1FBCB-1FBEF"
    ),
    "17.0": (
        "88F C5C CDC 1ACF-1ADD 1AE0-1AEB 20C1 2B96 A7CE-A7CF A7D2 A7D4 A7F1 FBC3-FBD2 FD90-FD91 FDC8-FDCE "
        "10940-10959 10EC5-10EC7 "
        "10ED0-10ED8 10EFA-10EFB 11B60-11B67 11DB0-11DDB 11DE0-11DE9 16EA0-16EB8 16EBB-16ED3 16FF2-16FF6 "
        "187F8-187FF 18D09-18D1E "
        "18D80-18DF2 1CCFA-1CCFC 1CEBA-1CED0 1CEE0-1CEF0 1E6C0-1E6DE 1E6E0-1E6F5 1E6FE-1E6FF 1F6D8 "
        "1F777-1F77A 1F8D0-1F8D8 "
        "1FA54-1FA57 1FA8A 1FA8E 1FAC8 1FACD 1FAEA 1FAEF 1FBFA 2B73A-2B73F 2CEA2-2CEAD 323B0-33479"
    ),
    "18.0": (
        "558 58B-58C 5C8-5C9 B53-B54 1ADE-1ADF 1AEC-1AF0 208F 209D-209F 20C2-20C4 2E60-2E63 A7DD A7E2 "
        "AB6C-AB6D 107BB-107BF "
        "10EC9-10ECF 10ED9-10EEE 10EF0-10EF9 11B0A 11DF0-11DF1 1246F 12475-1247F 12550-12686 18CD6-18CDA "
        "18D1F-18D20 18E00-19191 "
        "191A0-191D2 1B123-1B128 1B168 1CED2-1CED4 1CEDD-1CEDF 1CEF1-1CEFD 1D127-1D128 1D1EB-1D1FF "
        "1D250-1D281 1D6A6 1DB00-1DB1C "
        "1DF1F-1DF24 1DF2B-1DF81 1DF90-1DF96 1DFCD-1DFFF 1F1AE 1F6D9 1F7DA-1F7DB 1F7F1-1F7FF 1FA8B-1FA8D "
        "1FACC 1FADD 1FAEB "
        "1FAF9-1FAFA 2B81E 3D000-3FC3F"
    ),
}
"""The characters that each version was the first to assign, in hexadecimal: from Python's `unicodedata` and
the `unicodedata2` package of 14.0 to 18.0 (what is unassigned in one and assigned in the next), and from
Perl's `Age` property before."""

_LETTERS = {
    "10.0": "\U00000860\U0002db9e\U0002ebe0",
    "11.0": "\U00000560\U0001180b\U000187f1",
    "12.0": "\U00000e86\U00016f47\U0001e2eb",
    "13.0": "\U000008be\U0003085c\U0003134a",
    "14.0": "\U00000870\U00012fc6\U0002b738",
    "15.0": "\U0001123f\U00031b51\U000323af",
    "15.1": "\U0002ebf0\U0002ed27\U0002ee5d",
    "16.0": "\U00001c89\U00013bfd\U0001e5f0",
    "17.0": "\U0000088f\U00032b6b\U00033479",
    "18.0": "\U0000a7dd\U0003e3f5\U0003fc3f",
}
"""Three letters that each version was the first to assign."""

VERSIONS = tuple(_ASSIGNED)
"""The oldest first; 12.1 has one character, which is no letter, and so cannot be told from 12.0."""


@cache
def newer_than(version: str) -> Ranges:
    """Returns, in order, the characters that are assigned since that version, as far as we know.

    Raises ValueError for a version that is not in VERSIONS.
    """
    after = VERSIONS[VERSIONS.index(version) + 1 :]
    return tuple(sorted(_range(part) for name in after for part in _ASSIGNED[name].split()))


def _range(text: str) -> tuple[int, int]:
    first, _, last = text.partition("-")
    return int(first, 16), int(last or first, 16)


def version_of(is_letter: Callable[[str], bool]) -> str:
    """Returns the version of Unicode of somebody who says of a character whether it is a letter (or in
    `\\w`).

    It is the newest whose letters are known, all older ones' too, and no newer ones'. Empty for who knows
    only ASCII, or says something that no version says.
    """
    known = [name for name, letters in _LETTERS.items() if all(map(is_letter, letters))]
    strange = any(
        is_letter(letter) for name, letters in _LETTERS.items() if name not in known for letter in letters
    )
    return known[-1] if known and known == list(_LETTERS)[: len(known)] and not strange else ""


PROBES = (r"\w", r"\p{L}")
"""Patterns of one letter by which a library shows its version of Unicode; the second for those whose word
characters are ASCII."""


@lru_cache(maxsize=8)
def unicode_version(adapter: Adapter) -> str:
    """Returns the version of Unicode of a backend's classes, by the letters that it knows; empty if it has no
    such classes, or shows none."""
    if "regex" not in adapter.dialects:
        return ""
    return next(filter(None, (_version_by(adapter, pattern) for pattern in PROBES)), "")


def _version_by(adapter: Adapter, pattern: str) -> str:
    def takes(letter: str) -> bool:
        grammar_object = compiled.start()
        tokens = adapter.vocabulary.encode(letter.encode())
        return all(map(grammar_object.accept_token, tokens)) and bool(grammar_object.is_accepting())

    try:
        compiled = adapter.compile(Grammar("regex", pattern))
        return version_of(takes)
    # a vocabulary that cannot spell a letter, a pattern that it refuses, a fault that checks of its own will
    # tell; a panic in Rust is no Exception
    except BaseException as error:
        if isinstance(error, MemoryError | KeyboardInterrupt | SystemExit | OutOfTime):
            raise
        return ""
