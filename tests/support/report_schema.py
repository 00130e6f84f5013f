"""The published schema of the report's JSON."""

from __future__ import annotations

import json

from places import ROOT

SCHEMA = json.loads((ROOT / "results" / "report.schema.json").read_text())
