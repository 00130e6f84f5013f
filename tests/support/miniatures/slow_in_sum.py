"""Right adapters whose calls are each quick enough, and long together; and one that hangs and says that its
code is the harness's."""

from __future__ import annotations

import time
from typing import ClassVar

from harness.backend.grammar import Bitmask

from .reference import Reference, ReferenceObject


class SlowObject(ReferenceObject):
    def fill_bitmask(self, bitmask: Bitmask) -> None:
        time.sleep(0.1)
        super().fill_bitmask(bitmask)


class SlowInSum(Reference):
    object_class: ClassVar[type[ReferenceObject]] = SlowObject


class HangingObject(ReferenceObject):
    def fill_bitmask(self, bitmask: Bitmask) -> None:
        time.sleep(600)


class HangsAndIsOurs(Reference):
    object_class: ClassVar[type[ReferenceObject]] = HangingObject
    is_ours: ClassVar[bool] = True


class RaisingObject(ReferenceObject):
    def accept_token(self, token: int) -> bool:
        raise RuntimeError("no")


class RaisesAndIsOurs(Reference):
    object_class: ClassVar[type[ReferenceObject]] = RaisingObject
    is_ours: ClassVar[bool] = True
