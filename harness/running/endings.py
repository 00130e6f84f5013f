"""Decides how a case or a load has ended, and whose fault it is, where a worker or its child is done or
lost."""

from __future__ import annotations

import signal
from dataclasses import replace
from typing import Any

from harness.backend.process.lost import CLOSED, Lost, lost_by_status, lost_in_memory
from harness.backend.process.system import how_it_ended, signal_name, thread_count
from harness.rows.row import Finding, Status
from harness.running.work import Ending, Task
from harness.running.worker_process import Worker, bytes_of_ours, loads_backend, position, works_for_us
from harness.text import one_line

LEFT, CHANGED = "left_process_behind", "changed_its_process"
NO_MEMORY_LEFT = (
    "the kernel killed it because there was no memory left; "
    "give more memory, or fewer --jobs where there are several"
)
FORGED = "the backend wrote into the pipe on which its worker answers"


def status_of_loss(lost: Lost, is_ours: bool) -> Status:
    """Returns the status of a walk whose child was lost so; `is_ours` if code of ours was at work in it.

    While a tokenizer or a reference automaton of ours is at work, nothing that happens is the backend's, but
    for a forged answer and for closed pipes: no code of ours does that, and the backend may have done it
    before.
    """
    if lost.cause in ("forged", "closed"):
        return "backend_error" if lost.cause == "forged" else "crash"
    if is_ours or lost.whose == "harness":
        return "harness_error"
    return "timeout" if lost.cause == "timeout" else "oom" if lost.cause == "oom" else "crash"


def of_done_case(task: Task, message: dict[str, Any], left_behind: int) -> Ending:
    """Returns the ending of a case whose child said `done`, and left so many processes running."""
    findings: tuple[Finding, ...] = ()
    if left_behind:
        findings += (Finding(LEFT, None, f"{left_behind} process(es) were still there after the case"),)
    if changed := message["changed"]:
        text = f"the backend has changed {', '.join(changed)}, and left it so"
        findings += (Finding(CHANGED, None, text),)
    if message.get("failed"):
        return Ending(message["failed"], "worker", message["text"], findings=findings)
    if task.compiled is not None and task.compiled["status"] != "ok":
        return Ending(task.compiled["status"], "compile", task.compiled["text"], findings=findings)
    return Ending("ok", findings=findings)


def of_lost_child(worker: Worker, task: Task, status: int) -> Ending:
    """Returns the ending of a case whose child was lost, or killed by us; `status` is its wait status."""
    phase, instance, token, tokens = position(worker)
    lost, printed = task.killed or lost_by_status(status, "the backend"), worker.process.printed_text()
    text = lost.text
    if lost.signal == signal_name(signal.SIGKILL):
        text += " (not by us: the system when out of memory, or a person)"
    where = f"{phase} of token {token}, instance {instance}" if phase in ("fill", "accept", "end") else phase
    if task.checking:
        where = f"{phase} {task.checking}"
    text = f"{text} in {where}" + (f"; it printed: {printed}" if printed else "")
    ended = status_of_loss(lost, works_for_us(worker))
    return Ending(ended, phase, one_line(text), lost.signal, token, tokens)


def how_it_was_lost(code: int | None) -> str:
    """Returns how a worker was lost, for people: with this exit code, or with its pipe alone for None."""
    return f"the process {CLOSED}" if code is None else how_it_ended(code)


def of_lost_worker(worker: Worker, code: int | None) -> Ending:
    """Returns the ending of the case that was in hand when the worker itself ended with this exit code, or
    closed its pipe (None)."""
    phase, _, token, tokens = position(worker)
    text = f"the worker that started its process was lost with this case in hand ({how_it_was_lost(code)})"
    ended: Status = "harness_error" if not phase or works_for_us(worker) else "crash"
    return Ending(ended, phase or "worker", text, "", token, tokens)


def of_lost_load(worker: Worker, code: int | None) -> tuple[Status, str]:
    """Returns status and text for a worker that ended, or closed its pipe (None), before it was ready.

    What befalls our own code before the backend is loaded, and a kill from outside, is no crash of the
    backend.
    """
    is_loading = loads_backend(worker)
    when = "while it loaded the backend" if is_loading else "before it loaded the backend"
    printed = worker.process.printed_text()
    text = f"{how_it_was_lost(code)} {when}" + (f"; it printed: {printed}" if printed else "")
    return "crash" if is_loading and code != -signal.SIGKILL else "harness_error", text


def of_failed_load(worker: Worker, text: str) -> Ending:
    """Returns the ending of every case of an arm whose worker has raised an exception while it loaded."""
    return Ending("backend_error" if loads_backend(worker) else "harness_error", "load", text)


def lost_in_memory_of(worker: Worker, limit_bytes: int, growth_bytes: int = 0) -> Lost:
    """Returns the loss of a child that was killed because its resident memory passed the limit, which is ours
    where the process had passed it without the backend, or where most of it has come while code of ours was
    at work in the case, which is `growth_bytes`.

    The text says where that may also be the doing of a thread of the backend, which nobody can tell.
    """
    lost, loaded = lost_in_memory(limit_bytes), bytes_of_ours(worker)
    if loaded + growth_bytes < limit_bytes and growth_bytes < limit_bytes / 2:
        return lost
    if loaded >= limit_bytes:
        why = f"--memory is too small, {loaded / 1e9:.2g} GB are taken without the backend"
    else:
        why = f"{growth_bytes / 1e9:.2g} GB of it have come while code of ours was at work"
        if thread_count(worker.process.child or 0) == 1:
            why += ", so --memory is too small"
        else:
            why += " or a thread of the backend beside it (whose they are is not known)"
    return replace(lost, text=f"{lost.text}: {why}", whose="harness")


def of_large_load(worker: Worker, lost: Lost) -> Ending:
    """Returns the ending of every case of an arm whose child was killed for its memory before it took its
    first case: it had nothing but what was loaded."""
    text = f"{lost.text}, before its first case"
    return Ending(status_of_loss(lost, works_for_us(worker)), "load", text)


def of_stuck_load(worker: Worker, seconds: float) -> Ending:
    """Returns the ending of every case of an arm whose worker was not ready in time."""
    if loads_backend(worker):
        return Ending("timeout", "load", f"the backend did not load the vocabulary in {seconds:.0f} s")
    return Ending("harness_error", "load", f"the worker did not come to load the backend in {seconds:.0f} s")
