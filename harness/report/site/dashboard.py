"""A history → a static site: `index.html`, `feed.xml` and `badges/`."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

from markupsafe import Markup

from harness.backend.arm import arm
from harness.backend.environments.releases import release
from harness.errors import BadInput
from harness.measure.figures import ALL
from harness.outcomes.history import conformance, measurements
from harness.outcomes.history.alert_rule import EARLIER, RECENT, STEP, Event, State
from harness.outcomes.history.conformance import EVERY, FeatureChange, SuiteHistory
from harness.outcomes.history.measurements import Entry, Series, safe_name
from harness.report.site import atom, badges, features, trend
from harness.report.site.atom import FeedEntry, instant
from harness.report.site.trend import day, percent, said, short
from harness.report.templates import asset, template_environment

CHANGES, DETAILS, TABLE = 200, 20, 20
"""Changes on the page, features of one of them, and runs in the table under a chart, at most."""

ORDER: dict[State, int] = {"alert": 0, "better": 1, "quiet": 2, "no baseline": 3}
WORDS: dict[State, str] = {
    "alert": "▼ slower",
    "better": "▲ faster",
    "quiet": "● steady",
    "no baseline": "○ no baseline yet",
}


@dataclass(frozen=True)
class Plot:
    """One series as it is shown."""

    anchor: str
    title: str
    state: State
    svg: Markup
    events: tuple[tuple[int, str, str], ...]
    """Number, kind, and what it says."""
    table: tuple[Entry, ...]
    left_out: int
    is_main: bool
    """Shown at once: of all cases, or something happened."""


@dataclass(frozen=True)
class MachineHistory:
    """What was measured on one machine with one workload."""

    title: str
    runs: int
    references: tuple[str, ...]
    arms: tuple[tuple[str, tuple[Plot, ...]], ...]


@dataclass
class Latest:
    """One backend as it stands."""

    name: str
    slug: str
    version: str = ""
    time: str = ""
    counts: Counter[str] = field(default_factory=Counter)
    lost: int | None = None
    """Cases, at least; None where no release before was run on the same work."""
    states: list[State] = field(default_factory=list)


def write_dashboard(folder: Path, out: Path) -> Path:
    """Writes the site of the history into the folder `out`; its first page. Raises BadInput."""
    files = site(folder)
    try:
        for name, content in files.items():
            path = out / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    except OSError as error:
        raise BadInput(f"{out}: cannot be written: {error.strerror}; give another --out") from error
    return out / "index.html"


def site(folder: Path) -> dict[str, bytes]:
    """Returns the content of every file by its path; the same for the same history. Raises BadInput."""
    measured = [
        (place, entries, measurements.series(entries)) for place, entries in measurements.read(folder).items()
    ]
    seen = conformance.read(folder)
    outcomes = conformance.steps(seen)
    losses = [outcome for outcome in outcomes if outcome.lost]
    changes = sorted(
        [*_steps(measured), *_outcomes(outcomes)], key=lambda each: instant(each.time), reverse=True
    )
    latest = _latest(measured, seen, losses)
    times = [entry.time for _, entries, _ in measured for entry in entries] + [
        history.time for history in seen
    ]
    newest = max(times, key=instant, default="")
    html = (
        template_environment()
        .get_template("dashboard.html.j2")
        .render(
            latest=latest,
            newest=day(newest),
            sample=conformance.last_sample(seen),
            slow=sum(series.state == "alert" for _, _, every in measured for series in every),
            runs=len(
                {(entry.time, entry.run) for _, entries, _ in measured for entry in entries}
                | {(history.time, history.run) for history in seen}
            ),
            changes=[(change, day(change.time), short(change.title, 200)) for change in changes[:CHANGES]],
            changes_left_out=len(changes[CHANGES:]),
            places=[_place(*each) for each in measured],
            matrices=features.matrices(
                seen, {features.key_of(history): _anchor("f", features.key_of(history)) for history in seen}
            ),
            judged=conformance.judged,
            glyphs=features.GLYPHS,
            meanings=features.MEANINGS,
            words=WORDS,
            rule=(RECENT, EARLIER, f"{100 * (STEP - 1):.0f} %"),
            stylesheet=Markup(asset("style.css").strip() + "\n" + asset("dashboard.css").strip()),
        )
    )
    files = {"index.html": html.encode("utf-8", "replace"), "feed.xml": atom.feed(changes, newest)}
    for each in latest:
        files[f"badges/{each.slug}.json"] = badges.conformance_badge(
            f"{each.name} {each.version}".strip(), each.counts
        ).encode()
        files[f"badges/{each.slug}-speed.json"] = badges.speed_badge(
            f"{each.name} speed", each.states
        ).encode()
    return files


Measured = tuple[tuple[str, str], list[Entry], list[Series]]


def _anchor(kind: str, key: Iterable[str]) -> str:
    return f"{kind}-{hashlib.sha256(json.dumps(list(key)).encode()).hexdigest()[:12]}"


def _plot_key(place: tuple[str, str], series: Series) -> tuple[str, ...]:
    return *place, series.backend, series.options, series.metric, series.family, series.beside


def _place(place: tuple[str, str], entries: list[Entry], every: list[Series]) -> MachineHistory:
    arms = []
    shown = sorted(
        (series for series in every if not series.is_reference),
        key=lambda series: (series.backend, series.options),
    )
    for _, group in groupby(shown, key=lambda series: (series.backend, series.options)):
        plots = sorted(
            group,
            key=lambda each: (
                ORDER[each.state],
                not each.events,
                bool(each.beside),
                each.metric,
                each.family,
            ),
        )
        arms.append((short(arm(plots[0]), 80), tuple(_plot(place, plot) for plot in plots)))
    title = f"Hardware {short(place[0], 24)}, workload {short(place[1], 24)}"
    references = tuple(sorted({short(series.entries[-1].reference, 80) for series in every}))
    return MachineHistory(title, len({(entry.time, entry.run) for entry in entries}), references, tuple(arms))


def _plot(place: tuple[str, str], series: Series) -> Plot:
    beside = f", {short(series.beside, 24)} beside newer versions" if series.beside else ""
    events = tuple(
        (number, event.kind, _told(series, event)) for number, event in enumerate(series.events, 1)
    )
    title = f"{short(series.metric, 40).replace('_', ' ')}, {short(series.family, 40)}{beside}"
    table = series.entries[: -TABLE - 1 : -1]
    is_main = series.family == ALL or bool(series.events)
    anchor = _anchor("t", _plot_key(place, series))
    return Plot(
        anchor,
        title,
        series.state,
        trend.chart(series),
        events,
        table,
        len(series.entries) - len(table),
        is_main,
    )


def _told(series: Series, event: Event) -> str:
    first, at = series.entries[event.since], series.entries[event.at]
    return (
        f"from {day(first.time)} on ({short(first.version, 24)}, run {short(first.run, 40)}), told on "
        f"{day(at.time)}: {said(event)}"
    )


def _steps(measured: Sequence[Measured]) -> list[FeedEntry]:
    """The events of all series of an arm that fired in the same run are one change."""
    found: dict[tuple[str, ...], list[tuple[Series, Event, str]]] = {}
    for place, _, every in measured:
        for series in every:
            for event in series.events:
                at = series.entries[event.at]
                key: tuple[str, ...] = (
                    *place,
                    series.backend,
                    series.options,
                    series.beside,
                    event.kind,
                    at.time,
                    at.run,
                )
                found.setdefault(key, []).append((series, event, _anchor("t", _plot_key(place, series))))
    changes = []
    for key, group in found.items():
        group.sort(key=lambda each: -abs(each[1].now / each[1].before - 1))
        (first, event, anchor), worse = group[0], key[5] == "alert"
        since = first.entries[event.since]
        at = first.entries[event.at]
        rest = f" and {len(group) - 1} more" if len(group) > 1 else ""
        title = (
            f"{short(arm(first), 60)} {short(since.version, 24)} {'slower' if worse else 'faster'}: "
            f"{short(first.metric, 24)} of "
        )
        title += f"{short(first.family, 40)} {percent(event)}{rest}"
        details = tuple(
            f"{short(series.metric, 40)} of {short(series.family, 40)}: {_told(series, event)}"
            for series, event, _ in group
        )
        changes.append(FeedEntry(at.time, worse, key, title, details, anchor))
    return changes


def _outcomes(steps: Sequence[FeatureChange]) -> list[FeedEntry]:
    """The features of a suite that a release lost are one change; those that it won another."""
    changes = []
    for _, group in groupby(steps, key=lambda step: (id(step.before), id(step.after))):
        every = list(group)
        for worse in (True, False):
            mine = [(step.lost if worse else step.won, step) for step in every]
            found = sorted(
                (pair for pair in mine if pair[0]),
                key=lambda pair: (pair[1].feature != EVERY, -pair[0], pair[1].feature),
            )
            if found:
                changes.append(_outcome(found, worse))
    return changes


def _outcome(found: Sequence[tuple[int, FeatureChange]], worse: bool) -> FeedEntry:
    before, after = found[0][1].before, found[0][1].after
    most = max(count for count, _ in found)
    what = (
        f"passes at least {most} case(s) {'fewer' if worse else 'more'} of {short(after.suite, 40)} than "
        f"{short(before.version, 24)}"
    )
    details = []
    for _, each in found[:DETAILS]:
        then, now = (
            (
                seen.features.get(each.feature, {}).get("passed", 0),
                conformance.judged(seen.features.get(each.feature, {})),
            )
            for seen in (before, after)
        )
        details.append(
            f"{short(each.feature, 60) or 'all cases'}: {then[0]} of {then[1]} → {now[0]} of {now[1]}"
        )
    details += [f"and {len(found) - DETAILS} more"] if len(found) > DETAILS else []
    key = (
        *features.key_of(after),
        after.work,
        before.version,
        after.version,
        after.run,
        *(() if worse else ("won",)),
    )
    title = f"{short(arm(after), 60)} {short(after.version, 24)} {what}"
    return FeedEntry(
        max(before.time, after.time, key=instant),
        worse,
        key,
        title,
        tuple(details),
        _anchor("f", features.key_of(after)),
    )


def _latest(
    measured: Sequence[Measured], seen: Sequence[SuiteHistory], losses: Sequence[FeatureChange]
) -> list[Latest]:
    """One line per backend and options: its newest version, what passes of all its suites, and what the alert
    rule says."""
    found: dict[tuple[str, str], Latest] = {}

    def line(backend: str, options: str) -> Latest:
        name = f"{backend}:{options}" if options else backend
        return found.setdefault((backend, options), Latest(short(name, 60), safe_name(name)))

    newest: dict[tuple[str, str], SuiteHistory] = {}
    last: dict[tuple[str, ...], SuiteHistory] = {}
    has_before: set[tuple[str, ...]] = set()
    for key, group in groupby(sorted(seen, key=features.key_of), key=features.key_of):
        *before, each = conformance.releases(group)
        last[key] = each
        if any(one.work == each.work for one in before):
            has_before.add(key)
        there = newest.get((each.backend, each.options))
        if there is None or (release(each.version), instant(each.time)) > (
            release(there.version),
            instant(there.time),
        ):
            newest[each.backend, each.options] = each
    for key, each in last.items():
        head = newest[each.backend, each.options]
        if each.version == head.version:
            to = line(each.backend, each.options)
            to.version, to.time = short(each.version, 40), max(to.time, each.time, key=instant)
            to.counts.update(each.features.get(EVERY, {}))
            if key in has_before:
                to.lost = (to.lost or 0) + max(
                    (loss.lost for loss in losses if loss.after is each), default=0
                )
    for _, _, every in measured:
        for one in every:
            to, entry = line(one.backend, one.options), one.entries[-1]
            to.version = to.version or short(entry.version, 40)
            to.time = max(to.time, entry.time, key=instant)
            if not one.beside and not one.is_reference:
                to.states.append(one.state)
    for to in found.values():
        to.time = day(to.time)
    return sorted(found.values(), key=lambda each: each.name)
