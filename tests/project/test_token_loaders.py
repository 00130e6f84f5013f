"""The table of docs/tokenizers.md is what the published readings say."""

from __future__ import annotations

import json

from places import ROOT
from scripts import script_of

PUBLISHED = ROOT / "results" / "published" / "tokenizers-cpu-xeon-2vcpu-20261124"


def test_the_table_says_what_the_published_readings_say() -> None:
    script = script_of("token_loaders")
    readings = json.loads((PUBLISHED / "readings.json").read_text("utf-8"))
    assert script.table_of(readings) in (ROOT / "docs" / "tokenizers.md").read_text("utf-8")


def test_what_vllm_makes_of_mistrals_tokenizer_is_what_the_page_says() -> None:
    page = (ROOT / "docs" / "tokenizers.md").read_text("utf-8")
    said = (PUBLISHED / "mistral.txt").read_text("utf-8")
    counts = [line.split()[3] for line in said.splitlines() if "ids wrong" in line]
    assert counts == ["2,434", "1,424", "0", "750", "2"]
    for line in ("999 control, 1,435 U+FFFD | 750 control", "1,015 never text, 409 U+FFFD | 1 control"):
        assert line in page
