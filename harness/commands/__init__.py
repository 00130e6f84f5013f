"""What each command does: calls into the modules that know, and prints. A verb is a public function of its name, in any of these files."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from harness.commands.decoding import decode
from harness.commands.listing import backends, check, fetch, suites, vocabularies
from harness.commands.living import live
from harness.commands.measuring import bisect, compare, doctor, history, kernels, measure
from harness.commands.running import expect, merge, run
from harness.commands.showing import adjudicate, export, report, repro, table

Command = Callable[[argparse.Namespace], int]
"""Takes the parsed options, gives the exit code."""

LISTING: tuple[Command, ...] = (backends, check, fetch, suites, vocabularies)
MEASURING: tuple[Command, ...] = (bisect, compare, decode, doctor, history, kernels, live, measure)
RUNNING: tuple[Command, ...] = (expect, merge, run)
SHOWING: tuple[Command, ...] = (adjudicate, export, report, repro, table)

COMMANDS: dict[str, Command] = {each.__name__: each for each in (*RUNNING, *MEASURING, *SHOWING, *LISTING)}
