"""Tensor parallelism: ranks that decode one batch together must take the same grammars in the same step."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import TYPE_CHECKING

from harness.walk.loop.compile_job import Failure

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup


class Ranks:
    """The processes of a torch.distributed group (gloo; the default group unless one is given), which must be
    initialised.

    Every rank must call `agree` equally often. A rank that is gone is an error of torch's, after the group's
    own timeout.
    """

    def __init__(self, group: ProcessGroup | None = None) -> None:
        import torch.distributed

        self._group = group
        self.size: int = torch.distributed.get_world_size(group)

    def agree(self, ready: Set[int], failed: Mapping[int, Failure]) -> tuple[set[int], dict[int, Failure]]:
        """Returns the numbers that are ready on all ranks, and those that failed on any rank, with the reason
        of the first rank that has one."""
        import torch.distributed

        by_rank: list[tuple[set[int], dict[int, Failure]]] = [(set(), {})] * self.size
        torch.distributed.all_gather_object(by_rank, (set(ready), dict(failed)), group=self._group)
        failed_anywhere: dict[int, Failure] = {}
        for _, failures in by_rank:
            failed_anywhere = failures | failed_anywhere
        return set.intersection(*(ready_there for ready_there, _ in by_rank)), failed_anywhere
