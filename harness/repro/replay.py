"""The failure walked again in a process of its own, which says each step; it may hang or crash as the run's did."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from contextlib import suppress
from typing import Any

from harness.channel import BrokenChannel, Frames, send
from harness.checks import asks_for_forced_text
from harness.grammar import Adapter, Grammar
from harness.guard import forbid_network
from harness.live.judging import MODE as LIVE
from harness.process import ENVIRONMENT, how_it_ended, module
from harness.repro.find import Failure
from harness.row import Finding, arm
from harness.shrink.stepping import small_vocabulary, spelled, stepped, tokens_of, words_of
from harness.vocabulary import Vocabulary

EXAMPLES = 20
LOAD_SECONDS = 300.0


def replay(failure: Failure) -> list[dict[str, Any]]:
    """The messages of the process that walks it, up to its end or the deadline."""
    if failure.row.mode == LIVE:
        return [{"lost": "not here: a live server wrote it; `grammarbench live` asks it anew"}]
    read, write = os.pipe()
    command = [*module("harness.repro.replay", failure.python), str(write)]
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
        "walk": walk_of(failure.finding),
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
            ready, _, _ = select.select([read], [], [], LOAD_SECONDS if loading else failure.timeout_s)
            if not ready:
                messages.append({"lost": f"no answer after {failure.timeout_s:g} s; killed"})
                break
            data = os.read(read, 65536)
            if not data:
                if process.wait() != 0:
                    messages.append({"lost": how_it_ended(process.returncode)})
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


def walk_of(finding: Finding | None) -> tuple[int, ...] | None:
    """The tokens that show the finding; none where forced text is asked for at the very start. None: those of the instance."""
    if finding is None:
        return None
    at_start = finding.position == 0 and asks_for_forced_text(finding.check)
    return finding.walk if finding.walk or at_start else None


def main(arguments: list[str]) -> None:
    """`FD`, the question on stdin: walk, and say each step."""
    from harness.registry import installed_version, make, parse_specs
    from harness.vocabulary import load_vocabulary

    forbid_network()
    fd = int(arguments[0])
    question = json.load(sys.stdin)
    (spec,) = parse_specs(question["spec"])
    vocabulary = load_vocabulary(question["vocabulary"])
    adapter = make(spec, vocabulary)
    grammar = Grammar(question["dialect"], question["grammar"])
    # A finding's own walk ends with the token in question, an instance's with the end of the output.
    tokens = question["walk"]
    if tokens is None:
        tokens = [*vocabulary.encode(bytes.fromhex(question["content"])), vocabulary.eos_token]
    walk = spelled(vocabulary, tokens)
    library = f"{adapter.distribution} {installed_version(adapter.distribution)}"
    send(fd, {"script": "" if walk is None else adapter.script(grammar), "library": library, "walk": walk})
    try:
        said = _steps(adapter, grammar, tokens, fd)
        if walk is not None:
            few = small_vocabulary(words_of(walk))
            again = [(each.allowed, each.accepted) for each in stepped(make(spec, few), grammar, tokens_of(few, walk))]
            send(fd, {"few_suffice": said == again})
    except BaseException as error:
        send(fd, {"said": f"{type(error).__name__}: {error}"[:2000]})


def _steps(adapter: Adapter, grammar: Grammar, tokens: list[int], fd: int) -> list[tuple[bool, bool]]:
    """Say each step, and return what was said of it."""
    vocabulary = adapter.vocabulary
    said = []
    send(fd, {"said": "for each token: does the mask allow it, is it accepted"})
    for step in stepped(adapter, grammar, tokens):
        said.append((step.allowed, step.accepted))
        send(fd, {"step": [step.token, _name(vocabulary, step.token), step.allowed, step.accepted]})
        if step.refused or (len(said) == len(tokens) and step.token != vocabulary.eos_token):
            examples = [f"{each} {_name(vocabulary, each)}" for each in step.allowed_tokens[:EXAMPLES]]
            more = ["..."] * (len(step.allowed_tokens) > EXAMPLES)
            send(fd, {"allowed": examples + more, "count": len(step.allowed_tokens)})
    return said


def _name(vocabulary: Vocabulary, token: int) -> str:
    return vocabulary.special_tokens.get(token) or repr(vocabulary.tokens[token])


if __name__ == "__main__":
    main(sys.argv[1:])
