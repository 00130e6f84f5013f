"""The look at backends and vocabularies that comes before a run, a measurement (also of growth) or a
decoding."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from harness.backend.arm import arm, version_key
from harness.backend.describe import Description, describe
from harness.backend.environments.build import resolve
from harness.backend.registry import BackendSpec
from harness.backend.token_bytes.compare import kinds_text
from harness.errors import BadInput
from harness.text import counted, one_line


def look_at(
    specs: Sequence[BackendSpec],
    vocabularies: Sequence[str],
    say: Callable[[str], None],
    *,
    reads: bool = True,
) -> Description:
    """Returns what the backends and vocabularies are; says which library is imported from elsewhere than
    where it is installed and, with `reads`, which tokens a backend reads wrongly. Raises BadInput."""
    tokenizers = counted(len(vocabularies), "tokenizer")
    if len(vocabularies) == 1:
        tokenizers = f"the vocabulary {vocabularies[0]}"
    say(f"looking at {counted(len(specs), 'backend')} and {tokenizers} ...")
    placed = resolve(specs, say)
    described = describe(
        [str(spec) for spec, _ in placed], vocabularies, [python for _, python in placed], reads=reads
    )
    check_distinct(described)
    for line in (*described.shadowed, *reading_lines(described.readings)):
        say(line)
    return described


def check_distinct(described: Description) -> None:
    """Raise BadInput for two arms of one backend, version and options, by which rows are told apart."""
    identities = set()
    for described_arm in described.arms:
        who = version_key(described_arm)
        if who in identities:
            raise BadInput(
                f"{arm(described_arm)} {described_arm.version} is asked for twice: a version that is "
                "installed is the same as none; keep one"
            )
        identities.add(who)


def reading_lines(readings: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Yields a line for each backend and vocabulary with wrong tokens, or with nothing known of them."""
    for reading in readings:
        backend = reading["backend"] + (f":{reading['options']}" if reading["options"] else "")
        vocabulary = reading["vocabulary"]
        said = _reading_text(reading)
        if said:
            command = f"grammarbench check {backend} --tokens --vocabularies {vocabulary}"
            yield one_line(f"{backend} on {vocabulary}: {said}; {command}", spelled=True)


def _reading_text(reading: dict[str, Any]) -> str:
    """Returns what is wrong, in a line; empty where every id is read rightly, or nothing is shown."""
    if reading.get("problem"):
        return f"it is not known what it takes the tokens for: {reading['problem']}"
    if reading["refused"]:
        return f"every grammar is declined: {reading['refused']}"
    if not reading["wrong"]:
        return ""
    return f"it reads {counted(reading['wrong'], 'id')} wrongly ({kinds_text(reading['kinds'])})"
