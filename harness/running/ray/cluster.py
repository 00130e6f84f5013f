"""A Ray cluster for as long as it is needed: one that is there, or one of our own on this machine."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from typing import Any

from harness.errors import BadInput
from harness.rows.machine import usable_processors
from harness.text import one_line

NAME = "ray"

CONNECT_SECONDS = 10.0
ANSWER_SECONDS = 60.0
"""How long a cluster has to answer. Ray itself gives up earlier, with an end of the process that asks."""
OBJECT_STORE_BYTES = 200_000_000
"""The bytes of the object store of a cluster of our own: what passes through it is a few chunks of rows for
each task."""

FORM = (
    "write ray (a cluster of our own on this machine), ray:auto (the one that this machine is part of) "
    "or ray:HOST:PORT"
)

_ASKS = """
import sys
import ray
try:
    ray.init(address=sys.argv[1], log_to_driver=False, logging_level="CRITICAL")
except Exception as error:
    print(error)
    sys.exit(1)
"""
"""What the process does that asks whether Ray answers at an address."""

_ADDRESS = re.compile(r"(?P<host>[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\]):(?P<port>[0-9]{1,5})")


def parse_executor(text: str) -> str:
    """Returns the address in `ray:ADDRESS`, or `local`. Raises BadInput."""
    name, colon, address = text.partition(":")
    if name != NAME:
        raise BadInput(f'unknown executor "{text}"; {FORM}')
    if not colon:
        return "local"
    if address.startswith(("ray://", "//")):
        raise BadInput(
            f"{text}: rows do not stream through a Ray client; run the command on a machine of "
            "the cluster, with ray:auto"
        )
    shown = f'no address in "{text}"'
    if address == "auto" and (named := os.environ.get("RAY_ADDRESS")):  # Ray takes it for what auto is
        address, shown = named, f'ray:auto follows RAY_ADDRESS, and "{named}" is no address of a head'
    if address != "auto" and _ADDRESS.fullmatch(address) is None:
        raise BadInput(f"{shown}; {FORM}")
    return address


@contextmanager
def connected(address: str, jobs: int) -> Iterator[int]:
    """Connect to Ray, and yield how many tasks run at a time: `jobs`, or if that is 0 for as many as there
    are processors. Raises BadInput.

    A cluster of our own listens on loopback only, has no dashboard, tells nobody that it was used, and ends
    with us."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    # A cluster whose head is gone ends the run, which can be resumed; Ray would wait for it a minute.
    os.environ.setdefault("RAY_gcs_rpc_server_reconnect_timeout_s", "20")
    if address == "local":
        # Read when Ray is imported. It is meant for other systems, but only without it does a loopback
        # address remain one.
        os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
    try:
        import ray
    except ImportError as error:
        raise BadInput(f'--executor {NAME} needs Ray ({error}); pip install "grammarbench[ray]"') from error
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    _make_paths_absolute()
    # Short: Ray's sockets lie below it, and the system limits their names.
    short = "/tmp" if os.path.isdir("/tmp") else None
    with tempfile.TemporaryDirectory(prefix="gb-", dir=short, ignore_cleanup_errors=True) as scratch:
        # Ray puts the current folder on the path of every task: a case's neighbour there could be called
        # `json.py`.
        with chdir(scratch):
            try:
                if address == "local":
                    _start(ray, scratch, jobs, quiet)
                else:
                    _reach(address)
                    ray.init(address=address, **quiet)
            except (ConnectionError, RuntimeError, ValueError, OSError) as error:
                message = one_line(str(error).partition("\n")[0])[:300]
                raise BadInput(f"no Ray cluster at {address}: {message or type(error).__name__}") from error
        try:
            processors = int(ray.cluster_resources().get("CPU", 0))
            if not processors:
                raise BadInput(f"the Ray cluster at {address} has no processor for tasks (num-cpus)")
            yield jobs or processors
        finally:
            ray.shutdown()


def _make_paths_absolute() -> None:
    """Make the folders of PYTHONPATH absolute: Ray's processes do not begin in our folder."""
    if folders := os.environ.get("PYTHONPATH"):
        os.environ["PYTHONPATH"] = os.pathsep.join(map(os.path.abspath, folders.split(os.pathsep)))


def _start(ray: Any, scratch: str, jobs: int, quiet: dict[str, Any]) -> None:
    ray.init(
        address="local",
        num_cpus=jobs or usable_processors(),
        num_gpus=0,
        include_dashboard=False,
        object_store_memory=OBJECT_STORE_BYTES,
        _node_ip_address="127.0.0.1",
        _temp_dir=scratch,
        **quiet,
    )


def _reach(address: str) -> None:
    """Raise ValueError, OSError or ConnectionError if no Ray answers there.

    Ray would try for minutes, and where something else answers, it ends the process that asks without a word.
    So another process asks first.
    """
    if match := _ADDRESS.fullmatch(address):
        if not 0 < int(match["port"]) < 65536:
            raise ValueError(f"{match['port']} is no port")
        with socket.create_connection((match["host"].strip("[]"), int(match["port"])), CONNECT_SECONDS):
            pass
    command = [sys.executable, "-c", _ASKS, address]
    try:
        asked = subprocess.run(command, capture_output=True, timeout=ANSWER_SECONDS, check=False)
    except subprocess.TimeoutExpired as error:
        raise ConnectionError(f"nothing that Ray understands answers within {ANSWER_SECONDS:g} s") from error
    if asked.returncode:
        said = asked.stdout.decode(errors="replace").partition("\n")[0]
        raise ConnectionError(said or "what answers there is no Ray of this version")
