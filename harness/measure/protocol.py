"""What a measurement consists of, fixed before it starts: arms, profiles, the order of arms in a round, and
when a round is made again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

PROTOCOL = 2
"""The protocol's version, raised when figures of before and after cannot be compared."""

Role = Literal["reference", "a/a", "arm"]

AGAIN = " (again)"
"""What the name of the A/A arm has more than that of the reference, for people; its role tells it apart."""

Item = TypeVar("Item")


@dataclass(frozen=True)
class MeasuredArm:
    """One arm: a backend in processes of its own. The A/A arm is the reference once more, under a name of its
    own."""

    name: str
    spec: str
    backend: str
    version: str
    options: str
    role: Role
    python: str


def with_again(arms: Sequence[MeasuredArm], chosen: MeasuredArm) -> list[MeasuredArm]:
    """Returns the arms with `chosen` as the reference, and last the A/A arm, which is the reference once
    more."""
    reference = replace(chosen, role="reference")
    again = replace(reference, name=chosen.name + AGAIN, role="a/a")
    return [*(reference if arm is chosen else arm for arm in arms), again]


@dataclass(frozen=True)
class MeasureProfile:
    """How much is measured. `pass_seconds` and `rounds` decide how long timed calls take, start-up not
    included."""

    cases_of_ours: int | None
    """The most cases of each suite of the package; a user's own cases are all measured."""
    forks: int
    """Forks of all arms: enough to tell backends apart, whose ratios are large."""
    most_forks: int
    """The most forks. They are added while a verdict between arms of one backend, the A/A arm included, is
    open, and to these arms only."""
    rounds: int
    pass_seconds: float
    """About how many seconds of warm passes one arm makes over one case in one round; it makes at least one
    pass and at most MOST_PASSES."""
    timeout_s: float
    batch_sizes: tuple[int, ...]
    batch_cases: int
    """The number of cases of each suite that are filled in batches, and compiled with a cache and with
    threads."""


MOST_PASSES = 20

PROFILES = {
    "quick": MeasureProfile(None, 3, 10, 4, 0.010, 5.0, (1, 64), 0),
    "default": MeasureProfile(8, 5, 10, 4, 0.030, 10.0, (1, 8, 64, 512), 1),
    "full": MeasureProfile(None, 8, 12, 4, 0.050, 30.0, (1, 2, 4, 8, 16, 32, 64, 128, 256, 512), 3),
}

SLOW_PASS_NS = 100_000_000
"""Nanoseconds of a warm pass. A case whose warm pass takes a backend longer is measured in the first two
rounds of a fork, which are not made again, with a fresh compile in the first of them, and in no fork beyond
the profile's."""

SLOW_COMPILE_NS = 250_000_000
"""Nanoseconds of a compile. One that takes longer is made once in a fork instead of once in a round."""

VERY_SLOW_COMPILE_NS = 2_000_000_000
"""Nanoseconds of a compile. One that takes longer is made once in a fork too while VERY_SLOW_COMPILES_NS
lasts, and beyond it in the first fork only; warm passes elsewhere use the warm-up's compile."""

VERY_SLOW_COMPILES_NS = 10_000_000_000
"""Nanoseconds that all very slow compiles of all arms may take together in a fork after the first; the cases
that take the least come first. It lengthens the three forks of `quick` by 20 s at most."""


def order(arms: Sequence[Item], round_number: int) -> list[Item]:
    """Returns the order of the arms in a round.

    Rounds come in pairs, forwards and backwards (ABBA), and each pair begins with another arm (a Latin square
    over the pairs). So over two rounds every two arms are in both orders, equally far from the middle.
    """
    shift = round_number // 2 % max(1, len(arms))
    turned = [*arms[shift:], *arms[:shift]]
    return turned if round_number % 2 == 0 else turned[::-1]


# When a round of one case is made again, decided before anything is measured: the system gave the processor
# to somebody else.

MOST_AGAIN = 1
"""How often a round of a case is made again in a fork; under a steady load making it again would not help."""

MOST_SWITCHES_PER_SECOND = 100.0
MOST_STOLEN = 0.02
"""The largest share of a slot's time that the hypervisor may take."""


def is_disturbed(wall_ns: int, switches: int, stolen: float) -> bool:
    """Returns whether one slot (one arm, one case, one round) was disturbed. `stolen` is in seconds that the
    hypervisor took from the processor on which the arm ran."""
    seconds = wall_ns / 1e9
    return switches > 2 + MOST_SWITCHES_PER_SECOND * seconds or stolen > 0.01 + MOST_STOLEN * seconds
