"""The numbers of options: what no record can hold, no clock can count or no run would come to the end of is
refused in one line, before anything is begun."""

from __future__ import annotations

from pathlib import Path

import pages
import pytest
from refused import refused_line

from harness.cli.main import parser
from harness.cli.values import MOST, MOST_EFFORT
from harness.shape import LARGEST

HUGE = "9" * 24
RUN = "run regex --backends reference"
SERVER = "live http://127.0.0.1:9"
RELEASES = "bisect xgrammar 0.1.34..0.2.8 --slower compile --growth"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (f"{RUN} --seed {LARGEST + 1}", "whole number from 0 to 2^62"),
        (f"{RUN} --jobs {HUGE}", "at most 1,000,000,000"),
        (f"{RUN} --effort {MOST_EFFORT + 1}", "whole number from 0 to 10,000, or all"),
        (f"{RUN} --memory 1e300", "number from 0.000001 to 1,000,000,000"),
        (f"{RUN} --timeout 1e300", "number from 0.000001 to 1,000,000,000"),
        (f"{RUN} --check-timeout nan", "number from 0.000001 to 1,000,000,000"),
        (f"{SERVER} --limit {HUGE}", "at most 1,000,000,000"),
        (f"{SERVER} --requests {HUGE}", "at most 1,000,000,000"),
        (f"{SERVER} --seed {HUGE}", "whole number from 0 to 2^62"),
        (f"{SERVER} --temperature 1e300", "number from 0 to 1,000,000,000"),
        (f"{SERVER} --rate 8,1e-320", '--rate "8,1e-320" cannot be read'),
        (f"{SERVER} --concurrency {HUGE}", f'--concurrency "{HUGE}" cannot be read'),
        ("decode --rate 1e-300", "number from 0.000001 to 1,000,000,000"),
        ("decode --memory 1e300", "number from 0.000001 to 1,000,000,000"),
        (f"decode --backends reference --batch 1,{HUGE}", f'--batch "1,{HUGE}" cannot be read'),
        ("decode --backends reference --batch=", '--batch "" cannot be read'),
        ("measure --memory 1e300", "number from 0.000001 to 1,000,000,000"),
        ("measure growth --out x --memory 1e300", "number from 0.000001 to 1,000,000,000"),
        (f"{RELEASES} tags={'9' * 5000}", "at most 1,000,000,000"),
        (f"{RELEASES} tags=0", "at most 1,000,000,000"),
    ],
)
def test_a_number_beyond_the_bounds_is_refused_in_one_line(
    words: str,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert said in refused_line(words, capsys)
    assert not list(tmp_path.iterdir())


def test_the_bounds_themselves_are_taken() -> None:
    asked = f"{RUN} --seed {LARGEST} --effort {MOST_EFFORT} --jobs {MOST} --memory {MOST} --timeout 1e-6"
    options = parser().parse_args(asked.split())
    assert (options.seed, options.effort, options.jobs) == (LARGEST, MOST_EFFORT, MOST)
    assert (options.memory, options.timeout) == (MOST, 1e-6)
    assert parser().parse_args(f"{RUN} --effort all".split()).effort == -1


def test_an_empty_path_is_refused_wherever_a_path_is_taken(capsys: pytest.CaptureFixture[str]) -> None:
    """A script whose variable is empty must not write into the folder in which it runs."""
    taken = [
        [*verb.split(), f"{option}="]
        for verb, command in pages.verbs().items()
        for option, action in command._option_string_actions.items()
        if action.type is Path
    ]
    assert sum(words[-1] == "--out=" for words in taken) >= 8
    for words in [*taken, ["merge", "", "run"], ["table", "", "faults"]]:
        with pytest.raises(SystemExit) as ended:
            parser().parse_args(words)
        said = capsys.readouterr().err
        assert ended.value.code == 2 and "the path is empty" in said and said.count("\n") == 1, words
