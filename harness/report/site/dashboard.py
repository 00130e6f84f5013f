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
from harness.measure.figures import ALL
from harness.outcomes.case_state import CaseState
from harness.outcomes.history import conformance, measurements
from harness.outcomes.history.alert_rule import EARLIER, RECENT, STEP, Event, State
from harness.outcomes.history.conformance import EVERY, FeatureChange, SuiteHistory
from harness.outcomes.history.measurements import Entry, Series, safe_name
from harness.report.site import atom, badges, features, trend
from harness.report.site.atom import FeedEntry, instant
from harness.report.site.trend import by_how_much, day, event_text
from harness.report.templates import asset, template_environment
from harness.report.values import short
from harness.text import counted
from harness.whole_files import write_files

CHANGES, DETAILS, TABLE = 200, 20, 20
"""Changes on the page, features of one of them, and runs in the table under a chart, at most."""

ORDER: dict[State, int] = {"alert": 0, "better": 1, "quiet": 2, "no baseline": 3}
WORDS: dict[State, str] = {
    "alert": "▸ slower",
    "better": "◂ faster",
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
    samples: dict[str, None] = field(default_factory=dict)
    """Says what the runs behind the counts left out (`SuiteHistory.sample`), each text once; a run that was
    whole has the empty one."""
    lost: int | None = None
    """Cases, at least; None where no release before was run on the same work."""
    states: list[State] = field(default_factory=list)
    is_reference: bool = False
    """Are times of others held against its own? Its own then have no verdict."""


def write_dashboard(folder: Path, out: Path) -> Path:
    """Writes the site of the history into the folder `out`; its first page. Raises BadInput."""
    write_files(out, site(folder), "--out")
    return out / "index.html"


def site(folder: Path) -> dict[str, bytes]:
    """Returns the content of every file by its path; the same for the same history. Raises BadInput."""
    measured = [
        (place, entries, measurements.series(entries))
        for place, entries in measurements.read_entries(folder).items()
    ]
    histories = conformance.read_histories(folder)
    outcomes = conformance.steps(histories)
    losses = [outcome for outcome in outcomes if outcome.lost]
    changes = sorted(
        [*_steps(measured), *_outcomes(outcomes)], key=lambda change: instant(change.time), reverse=True
    )
    latest = _latest(measured, histories, losses)
    times = [entry.time for _, entries, _ in measured for entry in entries] + [
        history.time for history in histories
    ]
    newest = max(times, key=instant, default="")
    html = (
        template_environment()
        .get_template("dashboard.html.j2")
        .render(
            latest=latest,
            newest=day(newest),
            sample=conformance.last_sample(histories),
            slow=sum(series.state == "alert" for _, _, every in measured for series in every),
            has_baseline=any(series.state != "no baseline" for _, _, every in measured for series in every),
            has_successor=any(True for _ in conformance.successive(histories)),
            runs=len(
                {entry.run or entry.time for _, entries, _ in measured for entry in entries}
                | {history.run or history.time for history in histories}
            ),
            changes=[(change, day(change.time), short(change.title, 200)) for change in changes[:CHANGES]],
            changes_left_out=len(changes[CHANGES:]),
            not_compared=[short(line, 600) for line in conformance.not_compared(histories)],
            places=[_place(*machine) for machine in measured],
            matrices=features.matrices(
                histories,
                {features.key_of(history): _anchor("f", features.key_of(history)) for history in histories},
            ),
            judged=conformance.judged,
            states=[state.words for state in reversed(CaseState)],
            words=WORDS,
            rule=(RECENT, EARLIER, f"{100 * (STEP - 1):.0f} %"),
            stylesheet=Markup(asset("style.css").strip() + "\n" + asset("dashboard.css").strip()),
        )
    )
    files = {"index.html": html.encode("utf-8", "replace"), "feed.xml": atom.feed(changes, newest)}
    for line in latest:
        files[f"badges/{line.slug}.json"] = badges.conformance_badge(
            f"{line.name} {line.version}".strip(), line.counts, tuple(line.samples)
        ).encode()
        files[f"badges/{line.slug}-speed.json"] = badges.speed_badge(
            f"{line.name} speed", line.states, is_reference=line.is_reference
        ).encode()
    return files


Measured = tuple[tuple[str, str], list[Entry], list[Series]]


def _anchor(kind: str, key: Iterable[str]) -> str:
    return f"{kind}-{hashlib.sha256(json.dumps(list(key)).encode()).hexdigest()[:12]}"


def _plot_key(place: tuple[str, str], series: Series) -> tuple[str, ...]:
    return *place, series.backend, series.options, series.metric, series.family, series.beside


def _place(place: tuple[str, str], entries: list[Entry], every: list[Series]) -> MachineHistory:
    arms = []
    families = {series.family for series in every}
    # Cases of one family are all cases, and then there is no family of all.
    main = ALL if len(families) > 1 else next(iter(families), ALL)
    shown = sorted(
        (series for series in every if not series.is_reference),
        key=lambda series: (series.backend, series.options),
    )
    for _, group in groupby(shown, key=lambda series: (series.backend, series.options)):
        plots = sorted(
            group,
            key=lambda plot: (
                ORDER[plot.state],
                not plot.events,
                bool(plot.beside),
                plot.metric,
                plot.family,
            ),
        )
        arms.append((short(arm(plots[0]), 80), tuple(_plot(place, plot, main) for plot in plots)))
    title = f"Hardware {short(place[0], 24)}, workload {short(place[1], 24)}"
    references = tuple(sorted({short(series.entries[-1].reference, 80) for series in every}))
    return MachineHistory(title, len({(entry.time, entry.run) for entry in entries}), references, tuple(arms))


def _plot(place: tuple[str, str], series: Series, main: str) -> Plot:
    beside = f", {short(series.beside, 24)} beside newer versions" if series.beside else ""
    events = tuple(
        (number, event.kind, _event_line(series, event)) for number, event in enumerate(series.events, 1)
    )
    other = ", earlier runs over other cases" if series.is_over_other_cases else ""
    title = f"{short(series.metric, 40).replace('_', ' ')}, {short(series.family, 40)}{beside}{other}"
    table = series.entries[: -TABLE - 1 : -1]
    is_main = series.family == main or bool(series.events)
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


def _event_line(series: Series, event: Event) -> str:
    first, at = series.entries[event.since], series.entries[event.at]
    return (
        f"from {day(first.time)} on ({short(first.version, 24)}, run {short(first.run, 40)}), told on "
        f"{day(at.time)}: {event_text(event)}"
    )


def _steps(measured: Sequence[Measured]) -> list[FeedEntry]:
    """The events of all series of an arm that fired in the same run are one change."""
    by_run: dict[tuple[str, ...], list[tuple[Series, Event, str]]] = {}
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
                by_run.setdefault(key, []).append((series, event, _anchor("t", _plot_key(place, series))))
    changes = []
    for key, group in by_run.items():
        group.sort(key=lambda item: -abs(item[1].now / item[1].before - 1))
        (first, event, anchor), worse = group[0], key[5] == "alert"
        since = first.entries[event.since]
        at = first.entries[event.at]
        rest = f" and {len(group) - 1} more" if len(group) > 1 else ""
        title = (
            f"{short(arm(first), 60)} {short(since.version, 24)} {'slower' if worse else 'faster'}: "
            f"{short(first.metric, 24)} of "
        )
        title += f"{short(first.family, 40)} {by_how_much(event)}{rest}"
        details = tuple(
            f"{short(series.metric, 40)} of {short(series.family, 40)}: {_event_line(series, event)}"
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
            group_steps = sorted(
                (pair for pair in mine if pair[0]),
                key=lambda pair: (pair[1].feature != EVERY, -pair[0], pair[1].feature),
            )
            if group_steps:
                changes.append(_outcome(group_steps, worse))
    return changes


def _outcome(steps: Sequence[tuple[int, FeatureChange]], worse: bool) -> FeedEntry:
    before, after = steps[0][1].before, steps[0][1].after
    most = max(count for count, _ in steps)
    what = (
        f"works on at least {counted(most, 'case')} {'fewer' if worse else 'more'} of "
        f"{short(after.suite, 40)} than {short(before.version, 24)}"
    )
    details = []
    for _, step in steps[:DETAILS]:
        then, now = (
            (
                history.features.get(step.feature, {}).get(conformance.WORKS, 0),
                conformance.judged(history.features.get(step.feature, {})),
            )
            for history in (before, after)
        )
        details.append(
            f"{short(step.feature, 60) or 'all cases'}: {then[0]} of {then[1]} → {now[0]} of {now[1]}"
        )
    details += [f"and {len(steps) - DETAILS} more"] if len(steps) > DETAILS else []
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
    measured: Sequence[Measured], histories: Sequence[SuiteHistory], losses: Sequence[FeatureChange]
) -> list[Latest]:
    """Returns one line per backend and options: its newest version, how many cases of all its suites work,
    and what the alert rule says."""
    by_backend: dict[tuple[str, str], Latest] = {}

    def line(backend: str, options: str) -> Latest:
        name = f"{backend}:{options}" if options else backend
        return by_backend.setdefault((backend, options), Latest(short(name, 60), safe_name(name)))

    newest: dict[tuple[str, str], SuiteHistory] = {}
    last: dict[tuple[str, ...], SuiteHistory] = {}
    has_before: set[tuple[str, ...]] = set()
    for key, group in groupby(sorted(histories, key=features.key_of), key=features.key_of):
        *before, history = conformance.releases(group)
        last[key] = history
        if any(one.is_comparable(history) for one in before):
            has_before.add(key)
        there = newest.get((history.backend, history.options))
        if there is None or (release(history.version), instant(history.time)) > (
            release(there.version),
            instant(there.time),
        ):
            newest[history.backend, history.options] = history
    for key, history in last.items():
        head = newest[history.backend, history.options]
        if history.version == head.version:
            to = line(history.backend, history.options)
            to.version, to.time = short(history.version, 40), max(to.time, history.time, key=instant)
            to.counts.update(history.features.get(EVERY, {}))
            to.samples |= {short(history.sample, 200): None}
            if key in has_before:
                to.lost = (to.lost or 0) + max(
                    (loss.lost for loss in losses if loss.after is history), default=0
                )
    for _, _, every in measured:
        for one in every:
            to, entry = line(one.backend, one.options), one.entries[-1]
            to.version = to.version or short(entry.version, 40)
            to.time = max(to.time, entry.time, key=instant)
            to.is_reference |= one.is_reference
            if not one.beside and not one.is_reference:
                to.states.append(one.state)
    for to in by_backend.values():
        to.time = day(to.time)
    return sorted(by_backend.values(), key=lambda entry: entry.name)
