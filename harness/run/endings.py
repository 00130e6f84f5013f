"""Decides how a case or a load has ended, and whose fault it is, where a worker or its child is done or
lost."""

from __future__ import annotations

import signal
from typing import Any

from harness.backend.process.lost import lost_by_status
from harness.backend.process.system import how_it_ended
from harness.rows.row import Finding, Status
from harness.run.limits import Limits
from harness.run.work import Ending, Task
from harness.run.worker_process import Worker, position, printed_text, works_for_us
from harness.text import one_line

LEFT, CHANGED = "left_process_behind", "changed_its_process"


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


def of_lost_child(worker: Worker, task: Task, status: int, limits: Limits) -> Ending:
    """Returns the ending of a case whose child was lost, or killed by us; `status` is its wait status."""
    phase, instance, token, tokens = position(worker)
    printed, signal_name = printed_text(worker), ""
    if task.killed == "timeout":
        text = f"killed after {task.limit_s:g} s"
    elif task.killed == "oom":
        text = f"killed at {limits.memory_bytes / 1e9:g} GB of resident memory"
    elif task.killed:
        text = "it answered for another case"
    elif status & 0x7F:
        lost = lost_by_status(status)
        text, signal_name = lost.text, lost.signal
        if status & 0x7F == signal.SIGKILL:
            text += " (not by us: the system when out of memory, or a person)"
    else:
        text = f"the backend ended the process with exit code {status >> 8}"
    where = f"{phase} of token {token}, instance {instance}" if phase in ("fill", "accept", "end") else phase
    if task.checking:
        where = f"{phase} {task.checking}"
    text = f"{text} in {where}" + (f"; it printed: {printed}" if printed else "")
    # While a tokenizer or a reference automaton of ours is at work, nothing that happens is the backend's,
    # but for an answer for another case: none of ours is, and it may have been written before.
    is_ours = works_for_us(worker) and task.killed != "backend_error"
    ended: Status = "harness_error" if is_ours else task.killed or "crash"
    return Ending(ended, phase, one_line(text), signal_name, token, tokens)


def of_lost_worker(worker: Worker, code: int) -> Ending:
    """Returns the ending of the case that was in hand when the worker itself ended with this exit code."""
    phase, _, token, tokens = position(worker)
    text = f"the worker that started its process was lost with this case in hand ({how_it_ended(code)})"
    ended: Status = "harness_error" if not phase or works_for_us(worker) else "crash"
    return Ending(ended, phase or "worker", text, "", token, tokens)


def of_lost_load(worker: Worker, code: int, is_loading: bool) -> tuple[Status, str]:
    """Returns status and text for a worker that ended before it was ready.

    What befalls our own code before the backend is loaded, and a kill from outside, is no crash of the
    backend.
    """
    when = "while it loaded the backend" if is_loading else "before it loaded the backend"
    text = f"the process ended with {code} {when}; it printed: {printed_text(worker)}"
    return "crash" if is_loading and code != -signal.SIGKILL else "harness_error", text


def of_stuck_load(is_loading: bool, seconds: float) -> Ending:
    """Returns the ending of every case of an arm whose worker was not ready in time."""
    if is_loading:
        return Ending("timeout", "load", f"the backend did not load the vocabulary in {seconds:.0f} s")
    return Ending("harness_error", "load", f"the worker did not come to load the backend in {seconds:.0f} s")
