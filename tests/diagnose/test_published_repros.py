"""The scripts of docs/repros still show what the pages that speak of them say, with the versions that they
name."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest
from places import ROOT

from harness.backend.registry import installed_version

FOLDER = ROOT / "docs" / "repros"
PAGES = "".join(
    (FOLDER.parent / f"{name}.md").read_text(encoding="utf-8")
    for name in ("endless", "engines", "faults", "json_schema_masks", "tokenizers", "vocabularies")
)
HANGS = "no end within 5 s"
CRASHES = "ended by SIGSEGV"
ABORTS = "ended by SIGABRT"

SHOWN = {
    "llguidance_hangs_on_two_runs": HANGS,
    "xgrammar_mask_allows_what_accept_refuses": r"b'a\xe0' True False",
    "xgrammar_takes_surrogates": r"b'\xa0' True True",
    "xgrammar_ignores_a_pattern_without_a_type": "b'' True True",
    "xgrammar_walks_into_a_dead_end": "b'b' True True",
    "xgrammar_forced_text_raises": "UnicodeDecodeError: 'utf-8' codec can't decode byte 0x9f in position 0: "
    "invalid start byte",
    "outlines_core_stops_at_a_possible_end": "b'k' False False",
    "outlines_core_cannot_go_on_with_a_byte": r"b'\xe7' False False",
    "outlines_core_takes_an_empty_pattern_for_an_anchored_one": "b'c' False False",
    "outlines_core_ignores_unique_items": "b'' True True",
    "llguidance_refuses_a_number_below_its_maximum": "b'</s>' False False",
    "llguidance_misreads_an_escape": r"b'\xc3' False False",
    "llguidance_refuses_a_multiple": "b'</s>' False False",
    "outlines_core_cannot_write_a_control_character": "b'u' False False",
    "xgrammar_has_no_escape_beside_max_length": r"b'\\' False False",
    "xgrammar_ignores_max_length_without_a_type": "b'' True True",
    "xgrammar_takes_a_plus_in_an_optional_group_for_a_star": "b'' True True",
    "xgrammar_writes_a_blank_behind_a_comma": "b'2' False False",
    "xgrammar_refuses_other_types": "b'\"' False False",
    "xgrammar_crashes_on_tokens_in_a_repeat": CRASHES,
    "xgrammar_ends_inside_the_last_character": r"b'\xa9' False False",
    "xgrammar_forces_text_where_an_id_may_come": "forced: 'b'",
    "xgrammar_takes_the_end_for_any_token": "b'' True True",
    "xgrammar_requires_no_call_of_harmony": "b'' True True",
    "xgrammar_lets_a_trigger_pass": "b'' True True",
    "xgrammar_mask_lacks_a_quote_before_the_end_of_a_tag": "b'\"<' False True",
    "xgrammar_excludes_no_token_in_a_repeat": "b'b' True True",
    "xgrammar_counts_tokens_only_where_masks_are_filled": "without masks: [True, True, True]",
    "xgrammar_lets_an_argument_hold_its_end": "b'</parameter>' True True",
    "xgrammar_calls_a_word_a_number": "b'<|close|>argument<|sep|>' True True",
    "xgrammar_takes_a_listed_argument_twice": "b'<parameter=a>4</parameter>' True True",
    "xgrammar_forgets_a_reading_beside_a_token": "b'' False False",
    "xgrammar_takes_control_tokens_for_text": "<|start|> True True",
    "llguidance_never_allows_an_added_token": "<think> False False",
    "xgrammar_crashes_on_a_rule_of_itself": CRASHES,
    "llguidance_only_ignores_a_lexeme_that_is_ignored_too": "b'</s>' False False",
    "llguidance_refuses_a_range_of_counts_after_a_flag": "1(15): error parsing signed integer: "
    "invalid digit found in string (at \".\" ('.'))",
    "llguidance_forces_another_token_than_the_tokenizer": """[b'>>>', b'{"', b'a', b'"'] [b'>>']""",
    "llguidance_remembers_a_rejected_draft": "(b'[', b'[[') True 0",
    "llama_cpp_allows_an_overlong_zero_and_aborts": ABORTS,
    "llama_cpp_takes_any_value_for_an_object": "b'0' False False",
    "llama_cpp_resolves_a_ref_in_an_enum": "b'#' False False",
    "llama_cpp_reads_a_character_as_unknown_bytes": "[UNK_BYTE_0xe284a2™]",
    "sglang_llguidance_cannot_think": "GuidanceBackend 'GuidanceBackend' object has no attribute "
    "'allocate_vocab_mask'",
    "vllm_outlines_ends_inside_a_string": "<|end_of_text|> True",
    "vllm_auto_serves_one_library": "xgrammar is refused {'type': 'integer'} Structured output processing "
    "only supports one backend per engine. The engine is already using 'guidance', but this requ",
    "vllm_outlines_adds_a_space": "' the' False",
    "vllm_reads_tekken_by_its_display": r"b'\xc3' False",
    "lm_format_enforcer_ignores_items": "b'' True True",
    "lm_format_enforcer_forbids_the_beginning_of_a_character": r"b'\xe8' False False",
}
"""The last line of what each script prints, which is the fault."""


def test_every_script_is_run_and_spoken_of() -> None:
    assert {path.stem for path in FOLDER.glob("*.py")} == set(SHOWN)
    assert all(f"(repros/{name}.py)" in PAGES for name in SHOWN)


@pytest.mark.parametrize("name", [name for name in SHOWN if name.startswith(("vllm_", "sglang_"))])
def test_a_script_without_its_engine_says_which_it_needs(name: str) -> None:
    path = FOLDER / f"{name}.py"
    library, version = path.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ").split()
    if installed_version(library):
        pytest.skip(f"{library} is installed")
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stderr.splitlines() == [f"this script needs {library} {version}, which is not installed"]


@pytest.mark.parametrize("name", SHOWN)
@pytest.mark.long
def test_the_script_shows_the_fault(name: str) -> None:
    path = FOLDER / f"{name}.py"
    library, version = path.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ").split()
    if installed_version(library) != version:
        pytest.skip(
            f"shown on {library} {version}; {installed_version(library) or 'no version'} is installed"
        )
    try:
        done = subprocess.run(
            [sys.executable, str(path)],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=5 if SHOWN[name] == HANGS else 60,
        )
        lines = (done.stdout + done.stderr if done.returncode else done.stdout).strip().splitlines()
        signals = {-signal.SIGSEGV: CRASHES, -signal.SIGABRT: ABORTS}
        last = signals.get(done.returncode) or (lines or [""])[-1]
    except subprocess.TimeoutExpired:
        last = HANGS
    assert last == SHOWN[name]
