"""A history as a site: alerts where they should be, a feature's fate over releases, badges, a feed; hostile
strings stay text."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest
from histories import add_outcomes, entry, noise, time_of, write_conformance, write_entries
from synthetic import HOSTILE, case, info, row, synthetic_run, write_run

from harness.backend.arm import Arm
from harness.cli.main import main
from harness.errors import BadInput
from harness.outcomes.history import conformance, measurements
from harness.outcomes.history.alert_rule import events
from harness.outcomes.history.conformance import NO_CHECKS
from harness.outcomes.history.measurements import safe_name
from harness.report.site.atom import ATOM, FeedEntry, feed, instant
from harness.report.site.badges import conformance_badge, speed_badge
from harness.report.site.dashboard import site, write_dashboard

RUNS = 60
STEP_AT = 30

BADGE = {
    "type": "object",
    "properties": {
        "schemaVersion": {"const": 1},
        "label": {"type": "string", "minLength": 1, "maxLength": 60},
        "message": {"type": "string", "minLength": 1, "maxLength": 60},
        "color": {"enum": ["brightgreen", "green", "yellow", "orange", "red", "lightgrey"]},
    },
    "required": ["schemaVersion", "label", "message", "color"],
    "additionalProperties": False,
}
"""The required fields of https://shields.io/badges/endpoint-badge, and nothing that we do not write."""


def step(at: int = STEP_AT, factor: float = 1.1, until: int = RUNS) -> list[float]:
    return [factor if at <= number < until else 1.0 for number in range(RUNS)]


def but(ratios: list[float], **changed: float) -> list[float]:
    return [changed.get(f"at{number}", each) for number, each in enumerate(ratios)]


# The first ratio above 1.05 is that of run 33; the largest of the three from there is 1.06, and 1.05 times
# that is passed in run 49.
DRIFT = [1 + 0.004 * max(0, number - 20) for number in range(RUNS)]

Told = list[tuple[str, int]]
"""Kind of the event, and the first of the three runs that it rests on."""

HISTORIES: dict[str, tuple[list[float], Told]] = {
    "nothing": (noise([1.0] * RUNS, 1), []),
    "nothing, and more noise": (noise([1.0] * RUNS, 2, 0.02), []),
    "nothing, and bad runs": (noise(but([1.0] * RUNS, at12=1.4, at25=1.3, at26=1.3, at40=1.5), 3), []),
    "a step": (noise(step(), 4), [("alert", STEP_AT)]),
    "a step after a bad run": (noise(but(step(), at27=1.5), 5), [("alert", STEP_AT)]),
    "a step with a good run in it": (noise(but(step(), at31=1.0), 6), [("alert", STEP_AT + 2)]),
    "a step down": (noise(step(factor=0.8), 7), [("better", STEP_AT)]),
    "a step that was mended": (noise(step(until=45), 8), [("alert", STEP_AT), ("better", 45)]),
    "two steps, soon after each other": (
        noise([a * b for a, b in zip(step(), step(35), strict=True)], 9),
        [("alert", 30), ("alert", 35)],
    ),
    "a drift": (DRIFT, [("alert", 33), ("alert", 49)]),
}


@pytest.mark.parametrize("name", HISTORIES)
def test_alerts_exactly_where_they_should_be(name: str, tmp_path: Path) -> None:
    ratios, told = HISTORIES[name]
    write_entries(tmp_path, [entry(number, each) for number, each in enumerate(ratios)])
    ((series,),) = map(measurements.series, measurements.read_entries(tmp_path).values())
    assert [(each.kind, each.since) for each in series.events] == told
    assert all(each.at == each.since + 2 for each in series.events)
    files = site(tmp_path)
    found = ElementTree.fromstring(files["feed.xml"])
    dates = sorted(each.findtext(f"{{{ATOM}}}updated", "")[:10] for each in found.iter(f"{{{ATOM}}}entry"))
    assert dates == sorted(time_of(since + 2)[:10] for kind, since in told if kind == "alert")
    html = files["index.html"].decode()
    assert html.count('class="slower"') == len(dates) and html.count('class="faster"') == len(told) - len(
        dates
    )
    for event in series.events:
        assert f"{event.now:.3f}, before that at " in html and time_of(event.at)[:10] in html


def test_noise_with_a_drift_is_told_late_or_early_but_told_and_only_as_worse() -> None:
    for seed in range(20):
        found = events(noise(DRIFT, seed))
        assert (
            found and {each.kind for each in found} == {"alert"} and all(each.since >= 24 for each in found)
        )


@pytest.mark.parametrize("name", ["a drift", "a step after a bad run"])
def test_the_largest_of_the_eight_before_would_not_have_told(name: str) -> None:
    """The rule as it was: these two histories are hard for it."""
    ratios, told = HISTORIES[name]
    fired = [
        at for at in range(10, RUNS) if min(ratios[at - 2 : at + 1]) > 1.05 * max(ratios[at - 10 : at - 2])
    ]
    assert told and not fired


def test_versions_side_by_side_are_series_of_their_own(tmp_path: Path) -> None:
    """0.9 takes half of what 1.0 takes, and in every other run it is not measured, or alone."""
    entries = []
    for number in range(RUNS):
        both = [entry(number, 1.0), entry(number, 0.5, version="0.9")]
        entries += (
            both[:1] if number % 5 == 1 else both[1:] if number % 5 == 3 else both[:: 1 if number % 2 else -1]
        )
    write_entries(tmp_path, entries)
    (every,) = map(measurements.series, measurements.read_entries(tmp_path).values())
    assert {each.beside: {one.ratio for one in each.entries} for each in every} == {"": {1.0}, "0.9": {0.5}}
    assert not any(each.events for each in every)
    assert "0.9 beside newer versions" in site(tmp_path)["index.html"].decode()


def test_a_slower_release_is_told_in_the_series_of_the_newest(tmp_path: Path) -> None:
    new = [entry(number, 1.3, version="1.10") for number in range(20, 40)]
    write_entries(tmp_path, [*(entry(number, 1.0, version="1.9") for number in range(40)), *new])
    (every,) = map(measurements.series, measurements.read_entries(tmp_path).values())
    assert {each.beside: [(one.kind, one.since) for one in each.events] for each in every} == {
        "": [("alert", 20)],
        "1.9": [],
    }
    page = site(tmp_path)["index.html"].decode()
    assert "alpha 1.10 slower: fill of speed +30.0 %" in page and page.count('class="release"') == 1


def test_unproven_runs_are_drawn_and_judge_nothing(tmp_path: Path) -> None:
    write_entries(
        tmp_path, [entry(number, each, proven=number < STEP_AT) for number, each in enumerate(step())]
    )
    page = site(tmp_path)["index.html"].decode()
    assert page.count('class="dot unproven"') == RUNS - STEP_AT and 'class="slower"' not in page


# ------------------------------------------------------------------------------------- outcomes over releases


def outcomes_run(
    folder: Path, version: str, number: int, *bad: int, complete: bool = True, status: str = "ok"
) -> Path:
    """Six cases, `type` on all and `pattern` on the odd ones; those in `bad` accept what is forbidden, or end
    as `status` says."""
    cases = [case(each, [("one", b'"x"', False)]) for each in range(6)]
    rows = []
    for each, of in enumerate(cases):
        tags = ("type", "pattern") if each % 2 else ("type",)
        fields: dict[str, Any] = (
            {"status": status, "accepted": status == "ok"} if each in bad else {"accepted": False}
        )
        rows.append(
            [
                (
                    row(
                        backend_version=version, case_id=of.id, case=of.name, tags=tags, valid=False, **fields
                    ),
                    b"",
                )
            ]
        )
    header = info(
        [Arm("alpha", version, "", "alpha", ("json_schema",), "bitmask")],
        run=f"run{number}",
        started=time_of(number),
    )
    return write_run(folder, rows, header, [("first", each) for each in cases], complete)


def test_a_run_is_folded_and_a_release_that_loses_cases_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    past, out = tmp_path / "past", tmp_path / "site"
    for number, (version, bad) in enumerate([("1.9", (0,)), ("1.10", (1, 3)), ("1.11", (1,))]):
        assert (
            main(
                ["history", str(past), "--add", str(outcomes_run(tmp_path / version, version, number, *bad))]
            )
            == 0
        )
    assert [each.features["pattern"] for each in conformance.read_histories(past)] == [
        {"works": 3}, {"works": 1, "silently_wrong": 2}, {"works": 2, "silently_wrong": 1},
    ]  # fmt: skip
    found = {each.feature: each.lost for each in conformance.losses(conformance.read_histories(past))}
    assert found == {"": 1, "type": 1, "pattern": 2}
    assert main(["report", "--history", str(past), "--out", str(out)]) == 0
    page = (out / "index.html").read_text("utf-8")
    assert (
        "alpha 1.10 works on at least 2 cases fewer of first than 1.9" in page
        and ("pattern: 3 of 3 → 1 of 3") in page
    )
    assert (
        "alpha 1.11 works on at least 1 case more of first than 1.10" in page
        and ("pattern: 1 of 3 → 2 of 3") in page
    )
    assert "<td>none</td>" in page
    (named_by,) = re.findall(r'role="region" aria-labelledby="([^"]+)"', page)
    assert f'<h3 id="{named_by}">' in page, "each table of features has the name of its suite"
    assert re.findall(r'<th scope="col">(1\.\d+)<', page) == ["1.9", "1.10", "1.11"]
    assert (
        json.loads((out / "badges/alpha.json").read_text("utf-8"))["message"]
        == "works on 83.3 % of 6 judged (no checks)"
    )
    assert "alpha 1.10 on first: pattern: at least 2 fewer work than in 1.9" in capsys.readouterr().out
    assert main(["history", str(past), "--add", str(tmp_path / "1.9")]) == 2
    assert "only appended to" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("status", "lost"), [("timeout", {}), ("harness_error", {}), ("crash", {"": 1, "type": 1, "pattern": 1})]
)
def test_what_ran_out_of_time_or_is_our_fault_is_no_loss(
    status: str, lost: dict[str, int], tmp_path: Path
) -> None:
    add_outcomes(tmp_path / "past", outcomes_run(tmp_path / "a", "1.0", 0))
    add_outcomes(tmp_path / "past", outcomes_run(tmp_path / "b", "1.1", 1, 1, status=status))
    assert {
        each.feature: each.lost for each in conformance.losses(conformance.read_histories(tmp_path / "past"))
    } == lost


def test_other_cases_are_not_compared(tmp_path: Path) -> None:
    for number, work in enumerate("aba"):
        works = {"works": 9 - number}
        write_conformance(tmp_path, number, {"": works, "type": works}, version=f"1.{number}", work=work)
    (_, loss) = conformance.losses(conformance.read_histories(tmp_path))
    assert (loss.before.version, loss.after.version, loss.lost) == ("1.0", "1.2", 2)
    page = site(tmp_path)["index.html"].decode()
    assert page.count(", other cases, effort or checks") == 2
    assert '<span class="bad">✖ at least 2</span>' in page
    write_conformance(tmp_path, 3, {"": {"works": 1}}, version="1.3", work="c")
    assert "✖ at least" not in site(tmp_path)["index.html"].decode()  # there is nothing to hold it against


def test_a_run_with_a_measurement_is_one_run(tmp_path: Path) -> None:
    measured = entry(0, 1.0)
    write_entries(tmp_path, [measured])
    write_conformance(tmp_path, 1, {"": {"works": 1}}, run=measured.run)  # its walks began at another time
    assert "<dt>Runs</dt><dd>1</dd>" in site(tmp_path)["index.html"].decode()


def test_an_incomplete_run_goes_into_no_history(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="incomplete"):
        add_outcomes(tmp_path / "past", outcomes_run(tmp_path / "a", "1.0", 0, complete=False))
    assert not (tmp_path / "past").exists()


def test_every_case_of_a_run_is_counted_once(tmp_path: Path) -> None:
    add_outcomes(tmp_path / "past", synthetic_run(tmp_path / "run", cases=24))
    seen = conformance.read_histories(tmp_path / "past")
    assert {each.backend for each in seen} == {"alpha", "beta", "gamma", "delta"}
    for each in seen:
        assert sum(each.features[""].values()) == 8
    assert len({name for each in seen for count in each.features.values() for name in count}) >= 4


# ----------------------------------------------------------------------------------------- strangers' strings

STRANGE = (*HOSTILE, "javascript:alert(9)", "<!--<script>", "a\u2028b\u2029c", "x" * 1_000_000,
"\udcff\udcfe",
           "..", "/etc/passwd", "C:\\x", "\x00", "]]>&amp;", "\ufffe\uffff", "")  # fmt: skip


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.attributes: list[tuple[str, str]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.add(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        self.text += data


def test_strings_from_outside_stay_text_everywhere(tmp_path: Path) -> None:
    past, out = tmp_path / "past", tmp_path / "deep" / "site"
    for place, evil in enumerate(STRANGE):
        fields = dict.fromkeys(("backend", "options", "metric", "family", "run", "reference"), evil)
        ratios = (
            [1.0] * 8 + [1.3] * 4 if len(evil) < 1000 else [1.0]
        )  # a long one costs too much to say so often
        changing = [
            entry(number, each, version=f"{evil}{number // 6}", **fields)
            for number, each in enumerate(ratios)
        ]
        write_entries(past, changing, hardware=evil or "none", workload=f"{evil}{place}")
        for number, works in enumerate((3, 1)):
            arm = dict.fromkeys(("backend", "options", "vocabulary", "suite", "work", "run"), evil)
            counts = {"works": works, "breaks": 3 - works}
            write_conformance(
                past,
                20 * place + number,
                {"": counts, evil or "tag": counts},
                **arm | {"version": f"{number}{evil}"},
            )
    before = {path for path in tmp_path.rglob("*") if path.is_file()}
    page = write_dashboard(past, out)
    written = {path for path in tmp_path.rglob("*") if path.is_file()} - before
    assert all(
        re.fullmatch(
            r"index\.html|feed\.xml|badges/[A-Za-z0-9][A-Za-z0-9=+._-]*\.json", str(each.relative_to(out))
        )
        for each in written
    )
    assert len(written) == 2 + 2 * len(STRANGE)  # no two share a badge

    html = page.read_text("utf-8")
    assert len(html) < 2_000_000 and not set(html) & set("\x00\x07\x1b\x7f\x9b\u2028\u2029\u202e\u2066\ufffe")
    tags = Tags()
    tags.feed(html)
    assert not tags.found & {"script", "img", "iframe", "object", "form", "base"} and tags.found >= {
        "svg",
        "table",
        "polyline",
    }
    for name, value in tags.attributes:
        assert not name.startswith("on")
        if name in ("href", "src"):
            assert re.fullmatch(r"data:,|feed\.xml|#[A-Za-z0-9-]+|badges/[A-Za-z0-9=+._-]+\.json", value)
    assert "default-src 'none'" in html and "script-src" not in html and not re.search(r"url\(|@import", html)
    for shown in (
        "</script><script>alert(1)</script>",
        "javascript:alert(9)",
        r"\u2028",
        r"\udcff",
        "<!--<script>",
    ):
        assert shown in tags.text

    atom = ElementTree.fromstring((out / "feed.xml").read_bytes())
    entries = atom.findall(f"{{{ATOM}}}entry")
    assert len(entries) == 2 * len(STRANGE) - 1 and len(
        {each.findtext(f"{{{ATOM}}}id") for each in entries}
    ) == len(entries)
    assert any(
        "</script><script>alert(1)</script>" in each.findtext(f"{{{ATOM}}}title", "") for each in entries
    )
    for link in atom.iter(f"{{{ATOM}}}link"):
        assert re.fullmatch(r"feed\.xml|index\.html(#[a-z0-9-]+)?", link.get("href", ""))
    ids = {value for name, value in tags.attributes if name == "id"}
    assert {value[1:] for name, value in tags.attributes if name == "href" and value.startswith("#")} <= ids
    for path in (out / "badges").iterdir():
        jsonschema.validate(json.loads(path.read_text("utf-8")), BADGE)


def test_names_of_files() -> None:
    assert safe_name("run01") == "run01" and safe_name("a") != safe_name("A/a") != safe_name("A-a")
    for each in ("..", ".", "", "../../x", "/", "a/b", "con\x00", "=cmd", "\ud800", "x" * 500, ".hidden"):
        assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9=+-]{0,80}", safe_name(each))


# --------------------------------------------------------------------------------------------------- the rest


@pytest.mark.parametrize(
    ("text", "message", "color"),
    [
        (
            conformance_badge("a", {"works": 1999, "breaks": 1}),
            "works on 99.9 % of 2,000 judged",
            "brightgreen",
        ),
        (
            conformance_badge("a", {"works": 19999, "breaks": 1}),
            "works on 99.9 % of 20,000 judged",
            "brightgreen",
        ),
        (
            conformance_badge("a", {"works": 3, "not_measured": 9}),
            "works on 100.0 % of 3 judged",
            "brightgreen",
        ),
        (conformance_badge("a", {"works": 3, "refused": 7}), "works on 30.0 % of 10 judged", "orange"),
        (conformance_badge("a", {"not_measured": 9}), "not judged", "lightgrey"),
        (
            conformance_badge("a", {"works": 1}, [NO_CHECKS]),
            "works on 100.0 % of 1 judged (no checks)",
            "brightgreen",
        ),
        (
            conformance_badge("a", {"works": 1}, [NO_CHECKS, ""]),
            "works on 100.0 % of 1 judged (some checks)",
            "brightgreen",
        ),
        (conformance_badge("a", {"works": 1, "breaks": 4999}), "works on 0.1 % of 5,000 judged", "orange"),
        (speed_badge("a", [], is_reference=True), "reference", "lightgrey"),
        (speed_badge("a", ["quiet", "alert", "better"]), "1 slower", "red"),
        (speed_badge("a", ["quiet", "better"]), "1 faster", "brightgreen"),
        (speed_badge("a", ["no baseline", "quiet"]), "steady", "green"),
        (speed_badge("a", []), "no baseline", "lightgrey"),
    ],
)
def test_badges(text: str, message: str, color: str) -> None:
    value = json.loads(text)
    jsonschema.validate(value, BADGE)
    assert (value["message"], value["color"]) == (message, color)


def test_the_same_history_gives_the_same_bytes_and_an_id_stays(tmp_path: Path) -> None:
    write_entries(tmp_path, [entry(number, each) for number, each in enumerate(step()[: STEP_AT + 3])])
    first = site(tmp_path)
    assert first == site(tmp_path)
    write_entries(tmp_path, [entry(number, 1.1) for number in range(STEP_AT + 3, STEP_AT + 9)])
    ids = [
        ElementTree.fromstring(each["feed.xml"]).findtext(f"{{{ATOM}}}entry/{{{ATOM}}}id")
        for each in (first, site(tmp_path))
    ]
    assert ids[0] and ids[0] == ids[1]


def test_a_feed_of_anything_is_xml() -> None:
    evil = "".join(HOSTILE) + "\x00\ufffe\ud800]]>"
    found = ElementTree.fromstring(
        feed(
            [FeedEntry(evil, True, (evil,), evil, (evil, evil), "t-1"), FeedEntry("", False, (), "", (), "")],
            evil,
        )
    )
    (only,) = found.findall(f"{{{ATOM}}}entry")
    assert (
        r"\ud800]]>" in only.findtext(f"{{{ATOM}}}content", "")
        and only.findtext(f"{{{ATOM}}}updated") == "1970-01-01T00:00:00+00:00"
    )


def test_times_that_are_none_are_of_1970() -> None:
    assert (
        instant("yesterday").year == 1970
        and instant("2026-11-21T09:00:00Z").hour == 9
        and instant("2026-11-21").tzinfo
    )


@pytest.mark.parametrize("trend", ["none", "file"])
def test_a_trend_that_is_no_folder_is_refused_even_beside_a_run_without_times(
    trend: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = write_run(tmp_path / "run", [[(row(), b"")]], info())
    (tmp_path / "file").touch()
    assert main(["report", str(run), "--trend", str(tmp_path / trend)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{trend} is no folder" in line and not (run / "report").exists()


def test_a_feature_without_cases_is_in_no_table(tmp_path: Path) -> None:
    write_conformance(tmp_path, 1, {conformance.EVERY: {}, "nothing counted": {}})
    pages = site(tmp_path)
    assert b"nothing counted" not in pages["index.html"]


def test_an_empty_history_says_so_and_bad_input_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", "--history", str(tmp_path)]) == 0
    assert "holds no run yet" in (tmp_path / "dashboard/index.html").read_text("utf-8")
    assert main(["report"]) == 2 and "--history DIR" in capsys.readouterr().err
    assert main(["report", "x", "--history", str(tmp_path)]) == 2
    for option in (["--against", "x"], ["--time"], ["--split"]):
        assert main(["report", "--history", str(tmp_path), *option]) == 2
    assert main(["report", "--history", str(tmp_path / "none")]) == 2
    assert main(["report", "--history", str(tmp_path), "--trend", str(tmp_path)]) == 2
    assert "--trend works with runs only" in capsys.readouterr().err
    (tmp_path / "conformance").mkdir()
    (tmp_path / "conformance/x.jsonl.gz").write_bytes(b"no gzip")
    assert main(["report", "--history", str(tmp_path)]) == 2
    assert "no file of a history" in capsys.readouterr().err
