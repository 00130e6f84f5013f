"""The settings in which two runs, or a run and a record, must agree before their outcomes are compared."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any


def differing(then: str, now: str, settings: Iterable[tuple[str, object, object]]) -> list[str]:
    """Returns a sentence for each setting that is not the same: its name, and what it was then and now."""
    return [
        f"{then} with {name} {_in_words(before)}, {now} with {_in_words(after)}"
        for name, before, after in settings
        if before != after
    ]


def digests(vocabularies: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Returns the digests of a run's vocabularies, by name."""
    return {name: str(one["sha256"]) for name, one in vocabularies.items() if "sha256" in one}


def other_tokenizers(
    then: str, now: str, before: Mapping[str, Mapping[str, Any]], after: Mapping[str, Mapping[str, Any]]
) -> list[str]:
    """Returns a sentence for each vocabulary that has the same name and tokens and another tokenizer, where
    both runs tell."""
    return [
        f"the tokenizer of {name} writes other ids or names special tokens otherwise in {now} than in {then}"
        for name, about in before.items()
        if about.get("sha256") == after.get(name, {}).get("sha256")
        and _is_another(about, after.get(name, {}))
    ]


def _is_another(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    kinds = {about["tokenizer_sha256"] for about in (one, other) if "tokenizer_sha256" in about}
    return len(kinds) > 1


def moved_vocabularies(
    before: Mapping[str, Mapping[str, Any]], after: Mapping[str, Mapping[str, Any]]
) -> dict[str, str]:
    """Returns the vocabularies of the later run that the earlier one read from another path, by their later
    names, each with its earlier one: a checkout of its own has the same tokenizer elsewhere."""
    was, now = (_paths_alone(one, other) for one, other in ((before, after), (after, before)))
    moved = {now[key][0]: was[key][0] for key in now if len(now[key]) == len(was.get(key, ())) == 1}
    return {name: other for name, other in moved.items() if not _is_another(before[other], after[name])}


def _paths_alone(
    mine: Mapping[str, Mapping[str, Any]], others: Mapping[str, Mapping[str, Any]]
) -> dict[tuple[str, str], list[str]]:
    """Returns the names that are paths and that the other run does not have, by their kind and digest."""
    found: dict[tuple[str, str], list[str]] = {}
    for name, digest in digests(mine).items():
        kind, _, source = name.partition(":")
        if name not in others and Path(source).is_absolute():
            found.setdefault((kind, digest), []).append(name)
    return found


def other_vocabularies(then: str, now: str, before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Returns a sentence for each vocabulary that has the same name and another digest."""
    return [
        f"{name} is another vocabulary in {now} than in {then} (sha256 {after[name][:12]} and {digest[:12]})"
        for name, digest in before.items()
        if after.get(name, digest) != digest
    ]


def other_inputs(
    then: str,
    now: str,
    suites: tuple[Mapping[str, Mapping[str, Any]], Mapping[str, Mapping[str, Any]]],
    memory: tuple[int | None, int | None],
) -> Iterator[str]:
    """Yields what of the inputs is another and still may be compared, a line each: what comes out differently
    may come of it. What a record does not keep is None."""
    before, after = suites
    for name in before:
        was, is_now = before[name], after.get(name, {})
        known = "sha256" in was and "sha256" in is_now
        # A sample of other size is told as such.
        if known and was["sha256"] != is_now["sha256"] and was.get("cases") == is_now.get("cases"):
            yield f"{name} has other cases or instances in {now} than in {then}"
    if None not in memory and memory[0] != memory[1]:
        limits = [f"{(limit or 0) / 1e9:g} GB" for limit in memory]
        yield f"{then} was walked with a memory limit of {limits[0]}, {now} with {limits[1]}"


def _in_words(value: object) -> str:
    """Returns a setting as a command takes it; the effort -1 is that of all places."""
    return "all" if value == -1 else str(value).lower() if isinstance(value, bool) else str(value)
