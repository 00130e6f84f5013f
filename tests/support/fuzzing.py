"""Mutations of files, and the guard under which readers are tried with them: seeded, so that a number names
one input.

A reader may take a mutated file or refuse it with BadInput. It may not raise anything else, take long, write
outside the folder that it was given, start a process, run what a file holds, or open a connection.
"""

from __future__ import annotations

import copy
import json
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any

from harness.errors import BadInput

MOST_SECONDS = 20.0
"""A reader that takes longer with one of these small inputs has lost its bound; far above what any needs on a
loaded machine."""

MARKUP = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"

STRINGS = (
    "",
    "\x00",
    "\x1b]0;title\x07\x1b[31m\x9b2J",
    "\u202e\u2066\u200f",
    "\ud800",
    "=1+1",
    "@SUM(A1)",
    "-2+3",
    "+1",
    "\t=1",
    "\r=1",
    "::error::\n::set-output name=a::b%0A",
    "../../../../outside",
    "/outside",
    "a/b\\c",
    "x" * 300,
    "-" * 40,
    "--option",
    "{{ 7*7 }}{% raw %}",
    MARKUP,
    'javascript:alert(1)" onclick="alert(3)',
    "]]>",
    "`|\n# heading\n[a](javascript:alert(4))",
    "1e999",
    "NaN",
    "nan",
    "١٢",
)

SCALARS: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1,
    2,
    -(2**63),
    2**31,
    2**63 - 1,
    2**63,
    2**64,
    10**19,
    10**400,
    0.5,
    -0.0,
    1e-320,
    1.5,
    1e18,
    1e308,
    -1e308,
    float("inf"),
    float("-inf"),
    float("nan"),
)

CONTAINERS: tuple[Callable[[], Any], ...] = (
    list,
    dict,
    lambda: [[]],
    lambda: [None],
    lambda: [0, 10**12],
    lambda: [1, -1],
    lambda: [10**18, 10**18],
    lambda: [1, 2, 3],
    lambda: {"": None},
    lambda: {MARKUP: MARKUP},
    lambda: nested(2_000),
    lambda: ["x"] * 50,
)


def nested(levels: int) -> Any:
    """Returns a list in a list in a list."""
    value: Any = []
    for _ in range(levels):
        value = [value]
    return value


def foreign(random: Random) -> Any:
    """Returns a value that whoever wrote the reader may not have thought of."""
    kind = random.random()
    if kind < 0.4:
        return random.choice(STRINGS)
    return random.choice(SCALARS) if kind < 0.8 else random.choice(CONTAINERS)()


Place = tuple[Any, Any]
"""A container, and a key or an index in it."""


def places(value: Any, most: int = 5_000) -> list[Place]:
    """Where a value of the tree stands, for at most so many of them."""
    listed: list[Place] = []
    waiting = [value]
    while waiting and len(listed) < most:
        container = waiting.pop()
        keys: Any = (
            list(container)
            if isinstance(container, dict)
            else range(len(container))
            if isinstance(container, list)
            else ()
        )
        for key in keys:
            listed.append((container, key))
            if isinstance(container[key], dict | list):
                waiting.append(container[key])
    return listed


def _replace(random: Random, container: Any, key: Any) -> None:
    container[key] = foreign(random)


def _nudge(random: Random, container: Any, key: Any) -> None:
    """Another value of the same kind."""
    value = container[key]
    if isinstance(value, bool):
        container[key] = not value
    elif isinstance(value, int | float):
        container[key] = random.choice((value + 1, value - 1, -value, value * 1000, 0))
    elif isinstance(value, str):
        container[key] = random.choice(
            (value + random.choice(STRINGS), random.choice(STRINGS), value[:-1], value.upper(), value * 3)
        )
    elif isinstance(value, list):
        container[key] = random.choice((value[:-1], value + value[:1], value[::-1], [], value * 2))
    else:
        _replace(random, container, key)


def _remove(random: Random, container: Any, key: Any) -> None:
    del container[key]


def _rename(random: Random, container: Any, key: Any) -> None:
    if isinstance(container, dict):
        container[random.choice(STRINGS)] = container.pop(key)
    else:
        container.insert(key, foreign(random))


def _wrap(random: Random, container: Any, key: Any) -> None:
    container[key] = random.choice(
        (
            lambda value: [value],
            lambda value: {"x": value},
            lambda value: "1" if isinstance(value, dict | list) else str(value),
        )
    )(container[key])


def _swap(random: Random, container: Any, key: Any) -> None:
    other = random.choice(list(container) if isinstance(container, dict) else range(len(container)))
    container[key], container[other] = container[other], container[key]


def _double(random: Random, container: Any, key: Any) -> None:
    """An element that occurs twice, or a member that nobody knows."""
    if isinstance(container, list):
        with suppress(RecursionError):  # the change before this one may have made it too deep
            container.insert(key, copy.deepcopy(container[key]))
    else:
        container[random.choice(STRINGS)] = foreign(random)


CHANGES = (_replace, _replace, _replace, _nudge, _nudge, _remove, _remove, _rename, _wrap, _swap, _double)


def _gently(random: Random, value: Any) -> Any:
    """Returns the value with some strings, numbers and answers replaced by others of their kind: most readers
    take it."""
    leaves = [
        (container, key) for container, key in places(value) if not isinstance(container[key], dict | list)
    ]
    for container, key in random.sample(leaves, min(len(leaves), random.choice((1, 2, 5, 20)))):
        leaf = container[key]
        if isinstance(leaf, str):
            container[key] = random.choice(STRINGS)
        elif isinstance(leaf, bool):
            container[key] = not leaf
        elif isinstance(leaf, int | float):
            container[key] = random.choice(
                (0, 1, 2, 7, 1_000, 10**9, 2**31, 2**53, 2**62, leaf + 1, leaf * 2)
            )
    return value


def mutated_value(random: Random, value: Any) -> Any:
    """Returns the value with one to three of its parts changed, or with several replaced by others of their
    kind."""
    try:
        value = copy.deepcopy(value)
    except RecursionError:
        return foreign(random)
    if random.random() < 0.4:
        return _gently(random, value)
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        inside = places(value)
        if not inside or random.random() < 0.02:
            return foreign(random)
        random.choice(CHANGES)(random, *random.choice(inside))
    return value


def spelled(value: Any) -> bytes:
    """Returns the value as JSON with what Python adds to it (NaN, Infinity), whatever depth it has."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)
    try:
        return json.dumps(value, ensure_ascii=True).encode()
    finally:
        sys.setrecursionlimit(limit)


TOKENS = (
    b"\x00", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\n", b"\r", b"\r\n", b"\xef\xbb\xbf", b"\xe2\x80\xa8",
    b"null", b"NaN", b"-Infinity",
    b'"', b"\\", b"\\u0000", b"\\ud800", b"[", b"{", b"}", b"]", b",", b":", b"1e999", b"9" * 5_000,
    b"[" * 3_000, b" " * 500, b"\x1b[2J",
)  # fmt: skip


def mutated_bytes(random: Random, content: bytes) -> bytes:
    """Returns the content with a few bytes changed, taken out, put in, doubled, or cut off."""
    data = bytearray(content)
    for _ in range(random.choice((1, 1, 2, 5))):
        at = random.randrange(len(data) + 1)
        to = min(len(data), at + random.choice((1, 2, 8, 100)))
        kind = random.randrange(7)
        if kind == 0 and at < len(data):
            data[at] ^= 1 << random.randrange(8)
        elif kind == 1:
            del data[at:to]
        elif kind == 2:
            data[at:at] = random.choice(TOKENS)
        elif kind == 3:
            data[at:to] = random.choice(TOKENS)
        elif kind == 4:
            data[at:at] = data[at:to]
        elif kind == 5:
            del data[at:]
        else:
            lines = bytes(data).splitlines(keepends=True)
            if lines:
                line = random.randrange(len(lines))
                other = random.randrange(len(lines))
                lines[line] = random.choice((b"", lines[other], lines[line] * 2, b"\n"))
                data = bytearray(b"".join(lines))
    return bytes(data)


def mutated_json(random: Random, content: bytes) -> bytes:
    """Returns a JSON document changed as a value, or (one time in five) as bytes."""
    if random.random() < 0.2:
        return mutated_bytes(random, content)
    return spelled(mutated_value(random, json.loads(content)))


def mutated_lines(random: Random, content: bytes) -> bytes:
    """Returns a file of JSON lines with one line or two changed as values, or (one time in five) the file as
    bytes.
    """
    if random.random() < 0.2:
        return mutated_bytes(random, content)
    lines = content.splitlines()
    for _ in range(random.choice((1, 1, 2))):
        # The first line and the last one decide about all the others.
        place = random.choice((0, 0, len(lines) - 1, *range(min(len(lines), 20))))
        with suppress(
            ValueError, RecursionError
        ):  # the change before this one may have made it no JSON, or too deep for Python
            lines[place] = spelled(mutated_value(random, json.loads(lines[place])))
    return b"".join(line + b"\n" for line in lines)


# -------------------------------------------------------------------------------------------------- the guard

_watched: list[Path] = []
"""While a reader is tried: the folder in which it may write."""
_forbidden: list[str] = []
_OUR_PROCESS = ["-P", "-m", "harness.backend.process"]
"""How the judge is started, who may be asked about a document that was read: in a process of its own."""
"""What it did that it may not do."""

_ENDS = {"subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "os.forkpty", "pty.spawn"}
_CONNECTS = {"socket.connect", "socket.getaddrinfo", "urllib.Request", "http.client.connect"}
_CHANGES_FILES = {
    "os.remove",
    "os.rename",
    "os.rmdir",
    "os.mkdir",
    "os.link",
    "os.symlink",
    "os.truncate",
    "os.chmod",
    "shutil.rmtree",
}


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if not _watched or threading.current_thread() is not threading.main_thread():
        return
    if event == "subprocess.Popen" and list(arguments[1][1:4]) == _OUR_PROCESS:
        return
    if event in _ENDS or event in _CONNECTS:
        _forbidden.append(f"{event} {arguments!r}"[:300])
    elif event == "open" and arguments[0] is not None and not isinstance(arguments[0], int):
        mode, flags = arguments[1], arguments[2] or 0
        if (any(letter in mode for letter in "wax+") if isinstance(mode, str) else flags & 0o1103) and not (
            _is_inside(arguments[0]) or arguments[0] == tempfile.gettempdir()
        ):
            # The temporary folder itself is opened for a file without a name.
            _forbidden.append(f"open {arguments!r}"[:300])
    elif (
        event in _CHANGES_FILES
        and isinstance(arguments[0], str | bytes | Path)
        and not _is_inside(arguments[0])
    ):
        _forbidden.append(f"{event} {arguments!r}"[:300])


def _is_inside(path: Any) -> bool:
    text = path.decode("utf-8", "surrogateescape") if isinstance(path, bytes) else str(path)
    if text.endswith((".pyc", "/dev/null")) or "__pycache__" in text or text.startswith("/tmp/matplotlib"):
        return True
    # Not `resolve`, which would raise what the reader should raise.
    return (
        any(Path(text).absolute().is_relative_to(folder) for folder in _watched)
        and ".." not in Path(text).parts
    )


_installed: list[bool] = []


@contextmanager
def guarded(folder: Path) -> Iterator[list[str]]:
    """Notes, while it is open, everything that a reader may not do; in `folder` it may write."""
    if not _installed:
        sys.addaudithook(_audit)  # which cannot be taken out again, so that it asks whether it is wanted
        _installed.append(True)
    _forbidden.clear()
    _watched.append(folder.absolute())
    try:
        yield _forbidden
    finally:
        _watched.clear()


def wrong(folder: Path, read: Callable[[], object]) -> str:
    """Returns what is wrong with how it read, in a few lines; empty if it gave something, or refused with one
    line for the user."""
    began = time.monotonic()
    problem = ""
    with guarded(folder) as forbidden:
        try:
            read()
        except BadInput as error:
            if not str(error).strip():
                problem = "BadInput without a word"
            elif len(str(error)) > 3_000:
                problem = f"a message of {len(str(error)):,} characters: {str(error)[:200]} ..."
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt | SystemExit):
                raise
            problem = "".join([*traceback.format_tb(error.__traceback__)[-4:], repr(error)[:500]])
        forbidden = list(forbidden)
    if forbidden:
        return f"it did what no reader may: {forbidden[:3]}"
    seconds = time.monotonic() - began
    return problem or (f"it took {seconds:.1f} s" if seconds > MOST_SECONDS else "")
