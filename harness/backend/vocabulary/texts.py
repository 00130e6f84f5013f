"""Texts that tokenizers of the same tokens may write with other ids."""

from __future__ import annotations

TEXTS = (
    '{"name": "hello world", "items": [1, 2.5, -3e10, true, null], "émigré": "naïve café"}',
    '{\n  "accepted_adapters": ["description_of_the_item", "internationalization"]\n}',
    "The quick brown fox jumps over the lazy dog; it didn't, they'll, WE'VE, I'm.",
    '<function=get_weather>{"city": "Zürich"}</function> <think> </think> <tool_call>',
    "1234567890 3.14159 2026-12-01T02:30:00Z 0xFF 192.168.0.1 00000000 ১২৩ ４５６",
    "def f(x):\n\treturn x**2  # comment\n\n\n    if x != y: pass\r\n  \n",
    " leading   and  trailing spaces   ",
    "日本語のテキスト、中文文本。한국어 Русский Ελληνικά العربية עברית हिन्दी ไทย",
    "cafe\u0301 A\u030a \ufb01 \uff0c \u00bd \u212b ß İ ı Ǆ",
    "😀👩\u200d💻🇨🇭 \ufeff\u00a0\u2028\u200b▁ _ ▁▁",
    "https://example.org/a/b?c=d&e=f#g user@example.com $1,000.00 50% C:\\Users\\x",
    "aaaaaaaaaaaaaaaa ABCDEFGH camelCaseWord SNAKE_CASE_WORD kebab-case-word ....... ===== ----",
)
"""JSON, prose, code, numbers, white space, scripts, decomposed and wide characters, repetitions."""
