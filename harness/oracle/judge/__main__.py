"""The judge's process: questions on stdin, answers on stdout, one JSON object a line."""

from __future__ import annotations

import json
import sys
import threading
from contextlib import suppress
from typing import Any

from harness.backend.grammar import Grammar
from harness.oracle.judge import READY, Unjudgeable, is_valid
from harness.oracle.judge.membership import membership
from harness.oracle.judge.second import second_verdict
from harness.oracle.regex.readings import readings_against

_GRACE_SECONDS = 3.0
_DEEPEST = 20_000  # Python calls, in a process whose stack has room for them
_MEMORY = 8 << 30


def _answer(question: dict[str, Any]) -> dict[str, Any]:
    grammar, content = Grammar(question["dialect"], question["text"]), question["content"].encode("latin-1")
    try:
        if question.get("asks") == "membership":
            return {"valid": membership(grammar, content), "reason": ""}
        if question.get("asks") == "second":
            valid, _ = second_verdict(grammar.text, content, question["draft"], question["assert_formats"])
            return {
                "valid": valid,
                "reason": "" if valid is not None else "the second validator has no answer",
            }
        if question.get("asks") == "readings":
            found = list(readings_against(grammar.text, content, question["valid"], question["unicode"]))
            return {"valid": found, "reason": ""}
        valid = is_valid(grammar, content, draft=question["draft"], assert_formats=question["assert_formats"])
    except Unjudgeable as error:
        return {"valid": None, "reason": str(error)}
    except MemoryError:
        return {"valid": None, "reason": "out of memory"}
    return {"valid": valid, "reason": ""}


def _serve() -> None:
    """Answer questions, one JSON object a line, until the input ends."""
    import faulthandler

    for grammar in (Grammar("json_schema", "{}"), Grammar("regex", ".")):
        is_valid(grammar, b"0")  # imports what it needs before a deadline runs
    print(READY, end="", flush=True)
    for line in sys.stdin:
        question = json.loads(line)
        # Ends this process where the caller, killed itself, no longer can.
        faulthandler.dump_traceback_later(question["deadline"] + _GRACE_SECONDS, exit=True)
        print(json.dumps(_answer(question)), flush=True)
        faulthandler.cancel_dump_traceback_later()


def _main() -> None:
    with suppress(ImportError, ValueError, OSError):  # not on every platform
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(
            resource.RLIMIT_AS, (_MEMORY if most == resource.RLIM_INFINITY else min(_MEMORY, most), most)
        )
    sys.setrecursionlimit(_DEEPEST)
    threading.stack_size(512 << 20)
    threading.Thread(target=_serve).start()


if __name__ == "__main__":
    _main()
