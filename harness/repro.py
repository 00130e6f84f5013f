"""One failing case of a run, walked again step by step in a process of its own, and a script that shows it without us."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.case import Case, Instance
from harness.channel import BrokenChannel, Frames, send
from harness.errors import BadInput, did_you_mean
from harness.grammar import Adapter, Grammar, allocate_bitmask, allowed_tokens
from harness.guard import forbid_network
from harness.process import ENVIRONMENT, module
from harness.registry import installed_version, parse_spec
from harness.row import OURS, Row, arm, verdict
from harness.store import read_cases, read_info, read_rows
from harness.vocabulary import Vocabulary

EXAMPLES = 20


@dataclass(frozen=True)
class Failure:
    """A row that failed, its case, and the limit under which it is shown again."""

    row: Row
    case: Case
    instance: Instance
    timeout_s: float


def find_failure(folder: Path, wanted: str, backend: str, vocabulary: str | None, number: int | None) -> Failure:
    """The first failing row of that case (its name or id) and backend, or the row of that instance, failing or not. Raises BadInput."""
    info = read_info(folder)
    suites_and_cases = [(suite, case) for suite, _, case in read_cases(folder)]
    ids = {(suite, case.id) for suite, case in suites_and_cases if wanted in (case.id, case.name)}
    if not ids:
        raise BadInput(f'{folder} has no case "{wanted}"{did_you_mean(wanted, [case.name for _, case in suites_and_cases][:2000])}')
    spec = parse_spec(backend)
    options = ":".join(f"{name}={value}" for name, value in spec.options)
    matching = {
        (each.backend, each.version, each.options)
        for each in info.arms
        if each.backend == spec.name and spec.version in (None, each.version) and options in ("", each.options)
    }
    if not matching:
        raise BadInput(f'{folder} has no backend "{backend}"{did_you_mean(spec.name, [each.backend for each in info.arms])}')
    rows = [
        row
        for row in read_rows(folder)
        if (row.suite, row.case_id) in ids
        and (row.backend, row.backend_version, row.options) in matching
        and vocabulary in (None, row.vocabulary)
    ]
    if not rows:
        raise BadInput(
            f"{folder} has no row of {backend} for that case{f' with {vocabulary}' if vocabulary else ''}; the run may be incomplete"
        )
    if number is not None:
        chosen = [row for row in rows if row.instance == number]
        if not chosen:
            raise BadInput(f"that case has instances 0 to {max(row.instance or 0 for row in rows)}; there is no {number}")
    else:
        chosen = [row for row in rows if verdict(row.status, row.valid, row.accepted) not in ("pass", "unjudged") or row.findings]
        chosen = chosen or [row for row in rows if row.status in OURS] or rows
    row = chosen[0]
    (case,) = (case for suite, case in suites_and_cases if (suite, case.id) == (row.suite, row.case_id))
    instance = case.instances[row.instance] if row.instance is not None else Instance("", b"", None)
    return Failure(row, case, instance, info.timeout_s)


def show(failure: Failure) -> str:
    """Grammar, instance, the tokens up to the failure with their bytes, what was allowed there, and the script."""
    row, case = failure.row, failure.case
    said = {True: "valid", False: "invalid", None: "of unknown validity"}[failure.instance.valid]
    lines = [
        f"case      {_safe(case.name)} ({_safe(row.suite)}, {case.id})",
        f"backend   {_safe(arm(row))} {row.backend_version}, vocabulary {_safe(row.vocabulary)}",
        f"seen      {verdict(row.status, row.valid, row.accepted)}, status {row.status}"
        + (f" in {row.phase}: {_safe(row.text)}" if row.text else ""),
        *(f"finding   {each.check} at token {each.position}: {_safe(each.text)}" for each in row.findings),
        "",
        f"{case.grammar.dialect}:",
        _indented(case.grammar.text),
        f"instance {row.instance} ({_safe(failure.instance.name)}), {said}:" if case.instances else "no instance",
        _indented(failure.instance.content.decode("utf-8", "backslashreplace")),
        "walked again:",
    ]
    script = ""
    for message in _replay(failure):
        if "lost" in message:
            lines.append(f"  {message['lost']}")
        elif "step" in message:
            token, text, allowed, accepted = message["step"]
            lines.append(f"  {_yes(allowed)}, {_yes(accepted)}: token {token} {_safe(text)}")
        elif "allowed" in message:
            examples = _safe(", ".join(message["allowed"]))
            lines.append(f"  allowed there: {message['count']} token(s){': ' if examples else ''}{examples}")
        elif "said" in message:
            lines.append(f"  {_safe(message['said'])}")
        script = message.get("script", script)
    lines += ["", "without GrammarBench:" if script else "this adapter brings no script of its own", "", script]
    return "\n".join(lines)


def _yes(flag: bool) -> str:
    return "yes" if flag else "NO "


def _safe(text: str) -> str:
    return "".join(each if each.isprintable() else f"\\x{ord(each):02x}" for each in text)


def _indented(text: str, limit: int = 4000) -> str:
    cut = text if len(text) <= limit else f"{text[:limit]} ... ({len(text) - limit} characters more)"
    return "".join(f"    {_safe(line)}\n" for line in cut.splitlines() or [""])


def _replay(failure: Failure) -> list[dict[str, Any]]:
    """The messages of the process that walks it, up to its end or the deadline."""
    read, write = os.pipe()
    command = [*module("harness.repro"), str(write)]
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=(write,),
        env={**os.environ, **ENVIRONMENT},
    )
    os.close(write)
    row = failure.row
    question = {
        "spec": arm(row),
        "vocabulary": row.vocabulary,
        "dialect": failure.case.grammar.dialect,
        "grammar": failure.case.grammar.text,
        "content": failure.instance.content.hex(),
    }
    messages: list[dict[str, Any]] = []
    frames = Frames()
    assert process.stdin is not None
    with suppress(BrokenPipeError):
        process.stdin.write(json.dumps(question).encode())
        process.stdin.close()
    loading = True
    try:
        while True:
            ready, _, _ = select.select([read], [], [], 300.0 if loading else failure.timeout_s)
            if not ready:
                messages.append({"lost": f"no answer after {failure.timeout_s:g} s; killed"})
                break
            data = os.read(read, 65536)
            if not data:
                if process.wait() != 0:
                    messages.append({"lost": f"the process ended with {process.returncode}"})
                break
            loading = False
            messages += [message for message, _ in frames.feed(data)]
    except BrokenChannel:
        messages.append({"lost": "the backend wrote into the pipe on which we listen"})
    finally:
        process.kill()
        process.wait()
        os.close(read)
    return messages


def main(arguments: list[str]) -> None:
    """`FD`, the question on stdin: walk, and say each step."""
    from harness.registry import make, parse_specs
    from harness.vocabulary import load_vocabulary

    forbid_network()
    fd = int(arguments[0])
    question = json.load(sys.stdin)
    (spec,) = parse_specs(question["spec"])
    vocabulary = load_vocabulary(question["vocabulary"])
    adapter = make(spec, vocabulary)
    grammar = Grammar(question["dialect"], question["grammar"])
    tokens = [*vocabulary.encode(bytes.fromhex(question["content"])), vocabulary.eos_token]
    send(fd, {"script": _script(adapter, grammar, tokens)})
    try:
        _steps(adapter, grammar, tokens, fd)
    except BaseException as error:
        send(fd, {"said": f"{type(error).__name__}: {error}"[:2000]})


def _steps(adapter: Adapter, grammar: Grammar, tokens: list[int], fd: int) -> None:
    vocabulary = adapter.vocabulary
    compiled = adapter.compile(grammar)
    send(fd, {"said": "compiled; for each token: does the mask allow it, is it accepted"})
    grammar_object = compiled.start()
    mask = allocate_bitmask(vocabulary.size)
    for token in tokens:
        allowed_now = _allowed(adapter, grammar_object, mask)
        allowed, accepted = token in allowed_now, bool(grammar_object.accept_token(token))
        name = vocabulary.special_tokens.get(token) or repr(vocabulary.tokens[token])
        send(fd, {"step": [token, name, allowed, accepted]})
        if not (allowed and accepted):
            examples = [
                f"{each} {vocabulary.special_tokens.get(each) or vocabulary.tokens[each]!r}" for each in list(allowed_now)[:EXAMPLES]
            ]
            send(fd, {"allowed": examples + ["..."] * (len(allowed_now) > EXAMPLES), "count": len(allowed_now)})
            return


def _allowed(adapter: Adapter, grammar_object: Any, mask: Any) -> dict[int, None]:
    import numpy as np

    if adapter.mask_format == "bool":
        forbidden = np.ones(adapter.vocabulary.size, dtype=np.bool_)
        grammar_object.fill_bool_mask(forbidden)
        return dict.fromkeys(np.flatnonzero(~forbidden).tolist())
    grammar_object.fill_bitmask(mask)
    return dict.fromkeys(allowed_tokens(mask, adapter.vocabulary.size).tolist())


def _script(adapter: Adapter, grammar: Grammar, tokens: list[int]) -> str:
    """The adapter's own lines under a vocabulary that holds only what the walk needs: its tokens, every byte, end-of-sequence."""
    body = adapter.script(grammar)
    if not body:
        return ""
    vocabulary: Vocabulary = adapter.vocabulary
    words = list(dict.fromkeys(vocabulary.tokens[token] for token in tokens[:-1]))
    walk = [words.index(vocabulary.tokens[token]) for token in tokens[:-1]]
    head = [
        f"# {adapter.distribution} {installed_version(adapter.distribution)}",
        f"vocabulary = {words!r}",
        "vocabulary += [bytes([byte]) for byte in range(256) if bytes([byte]) not in vocabulary] + [b'']",
        f"walk = {walk!r} + [len(vocabulary) - 1]",
        f"grammar = {grammar.text!r}",
    ]
    return "\n".join([*head, body.strip("\n"), ""])


if __name__ == "__main__":
    main(sys.argv[1:])
