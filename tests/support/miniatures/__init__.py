"""Adapters without a backend: a right one, and others that are each wrong in one named way.

This folder is not installed. With the folder above it on PYTHONPATH, `--backends miniatures:Hangs` finds it.
"""

from __future__ import annotations

from .harmful import AbortsOutOfMemory as AbortsOutOfMemory
from .harmful import AnswersTwice as AnswersTwice
from .harmful import ClosesDescriptors as ClosesDescriptors
from .harmful import Connects as Connects
from .harmful import DoubleForks as DoubleForks
from .harmful import EatsMemory as EatsMemory
from .harmful import ExitsSilently as ExitsSilently
from .harmful import Hangs as Hangs
from .harmful import HangsDeaf as HangsDeaf
from .harmful import HangsInAccept as HangsInAccept
from .harmful import HangsInFill as HangsInFill
from .harmful import HangsInStart as HangsInStart
from .harmful import LeavesChild as LeavesChild
from .harmful import PrintsGarbage as PrintsGarbage
from .harmful import Raises as Raises
from .harmful import RaisesInAccept as RaisesInAccept
from .harmful import RaisesKeyboardInterrupt as RaisesKeyboardInterrupt
from .harmful import RaisesSystemExit as RaisesSystemExit
from .harmful import Segfaults as Segfaults
from .harmful import SegfaultsInFill as SegfaultsInFill
from .harmful import WritesIntoPipes as WritesIntoPipes
from .harmful import leftovers as leftovers
from .reference import JsonOnly as JsonOnly
from .reference import Reference as Reference
from .reference import small_vocabulary as small_vocabulary
from .wrong import MUTANTS as MUTANTS
