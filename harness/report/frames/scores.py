"""The scores of a decoding's texts as lines of one table."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from harness.report.frames.rows import COUNT, TEXT, WHOSE, Line
from harness.report.frames.times import whose
from harness.serve.decode import goodness
from harness.serve.decode.figures import Decoded
from harness.serve.decode.record import Decoding

SHARE = NATS = "Float64"

SCORES = {
    **WHOSE, "workload": TEXT, "strategy": TEXT, "batch": COUNT, "mode": TEXT, "request": TEXT,
    "places": COUNT, "removed": SHARE, "top_id_masked": COUNT, "tax_nats": NATS, "imposed_nats": NATS,
    "ids": COUNT, "own_ids": COUNT,
}  # fmt: skip


def of_decoding(decoding: Decoding, run: str) -> Iterator[Line]:
    """Yields a line for each text that was fed to the model again; none for a model of random weights."""
    arms = {arm.name: arm for arm in decoding.setup.arms}
    for cell in Decoded(decoding).cells:
        for text in cell.goodness.texts if cell.goodness is not None else ():
            removed, scored = goodness.removed([text]), goodness.with_places([text])
            yield {
                **whose(run, arms[cell.arm], decoding.setup.vocabulary),
                "workload": cell.setting.workload,
                "strategy": cell.strategy,
                "batch": cell.setting.batch,
                "mode": cell.setting.mode,
                "request": text.name,
                "places": len(text.places),
                "removed": float(np.mean(removed)) if removed else None,
                "top_id_masked": int(text.column("favourite_masked").sum()),
                "tax_nats": next(iter(goodness.taxes(scored)), None),
                "imposed_nats": next(iter(goodness.imposed(scored)), None),
                "ids": text.ids,
                "own_ids": None if text.other is None else text.ids - text.other,
            }
