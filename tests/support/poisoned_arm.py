"""An arm in which one strategy fails as on a GPU after an illegal access: from then on every call of that
process fails."""

from __future__ import annotations

from typing import Any

from harness.backend.process.child import Answer, Handler
from harness.serve.decode import arm
from harness.serve.decode.arm import DecodeHandler


class Poisoned(DecodeHandler):
    poisoned = False

    def run(self, role: str, setting: dict[str, Any], cold: bool = False) -> Answer:
        self.poisoned |= setting["strategy"] == "jump_forward"
        if self.poisoned:
            raise RuntimeError("CUDA error: an illegal memory access was encountered")
        return super().run(role, setting, cold)


def load_arm(**arguments: Any) -> tuple[Handler, dict[str, Any]]:
    """Returns the handler of such an arm."""
    handler, described = arm.load_arm(**arguments)
    assert isinstance(handler, DecodeHandler)
    return Poisoned(handler.adapter, handler.name, handler.device, handler.dtype), described
