"""What the fuzz test mutates: for every reader one good file of its kind, and everything that is made of such
a file."""

from __future__ import annotations

import gzip
import json
import lzma
import shutil
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any

import histories
import synthetic
from decode_runs import Played, decoding
from failing import find_failure
from fuzzing import MARKUP, mutated_bytes, mutated_json, mutated_lines
from measured import arm, concluded, steady, write_measurement
from outputs import look_at_csv, look_at_markdown
from places import ROOT

from harness.backend.arm import Arm
from harness.backend.vocabulary import load_vocabulary
from harness.cases.case_line import case_from_line, case_to_line
from harness.cases.suite import deep, find_suite
from harness.cases.suite import read_cases as cases_of_suite
from harness.cli.output import plain
from harness.errors import BadInput
from harness.measure import show as measure_show
from harness.measure.estimate import is_proven
from harness.measure.figures import Figures
from harness.measure.growth import show as growth_show
from harness.measure.growth.conclude import caching, conclusions, many_schemas
from harness.measure.growth.record import FILE as GROWTH
from harness.measure.growth.record import read_growth
from harness.measure.kernels import stored as kernels
from harness.measure.kernels.session import FILE as KERNELS
from harness.measure.kernels.table import kernels_text as kernels_text
from harness.measure.record import read_measurement
from harness.oracle.judge import check_schema
from harness.outcomes import compare, expected, faults
from harness.outcomes.history import conformance, measurements
from harness.outcomes.result import result_of
from harness.report import run_summary
from harness.report.export import FORMS
from harness.report.export import write as export
from harness.report.growth import write_growth
from harness.report.page.inputs import read_inputs
from harness.report.page.page import write_report
from harness.report.tables import instances as table
from harness.rows.folder import ROWS
from harness.rows.resume import stored
from harness.rows.store import PACKED, packed, read_cases, read_end, read_info, read_rows, read_samples
from harness.running.merge import merge
from harness.serve.decode import show as decode_show
from harness.serve.decode import verdicts
from harness.serve.decode.as_json import to_json as decoded_as_json
from harness.serve.decode.record import DecodeRecorder, read_decoding
from harness.serve.decode.setting import Setting
from harness.serve.live import record as live
from harness.serve.live import show as live_show
from harness.serve.live.answer import Answer, Heard
from harness.serve.live.asking import Sampling
from harness.serve.live.client import Deadlines
from harness.serve.live.load import Load
from harness.serve.requests.latency import OBJECTIVES
from harness.text import PIPE

Mutate = Callable[[Random, bytes], bytes]


@dataclass(frozen=True)
class Seed:
    """A folder of good files, which of them are mutated and how, and what reads it."""

    write: Callable[[Path], object]
    mutate: Mapping[str, Mutate]
    """How each file is changed; the keys are the files' paths in the folder."""
    read: Callable[[Path], object]
    dear: Callable[[Path], object] | None = None
    """What takes long: it reads every twentieth input too."""


def fresh(seed: Seed, folder: Path) -> None:
    """The good files, anew. They are written once a process."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(_written(seed.write), folder)


@cache
def _written(write: Callable[[Path], object]) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="fuzz-seed-"))
    write(folder / "good")
    return folder / "good"


def mutated(seed: Seed, number: int, folder: Path) -> str:
    """Writes input `number` of the seed into the folder; returns the name of the file that was changed."""
    random = Random(f"{sorted(seed.mutate)} {number}")
    fresh(seed, folder)
    name = random.choice(sorted(seed.mutate))
    path = folder / name
    content = path.read_bytes()
    path.write_bytes(seed.mutate[name](random, content))
    return name


# ----------------------------------------------------------------------------------------------- a run's rows

ARMS = (synthetic.ARMS[0], replace(synthetic.ARMS[0], version="1.3.0"), synthetic.ARMS[1])


def _write_run(folder: Path) -> None:
    synthetic.synthetic_run(folder, cases=3, arms=ARMS, seed=3)


def _mutated_samples(random: Random, content: bytes) -> bytes:
    return mutated_bytes(random, content)


def _write_published(folder: Path) -> None:
    _write_run(folder)
    (folder / PACKED).write_bytes(packed((folder / ROWS).read_bytes()))
    for name in ("rows.jsonl", "cases.jsonl", "samples.i64"):
        (folder / name).unlink()


def read_published(folder: Path) -> None:
    """What a run that was published without its cases and samples is read by."""
    list(read_rows(folder))
    summary = run_summary.read_summary(folder)
    is_shown(run_summary.summary_text(summary, PIPE))
    table.terminal_text(folder)
    faults.fault_frame(folder)


def read_run(folder: Path) -> None:
    """Everything that is cheap and made of rows."""
    list(read_rows(folder))
    info = read_info(folder)
    read_end(folder)
    len(read_samples(folder))
    for suite, version, case in read_cases(folder):
        assert case_from_line(case_to_line(suite, version, case)) == (suite, version, case)
    stored(folder, {})
    summary = run_summary.read_summary(folder)
    json.dumps(plain(run_summary.to_json(summary)), allow_nan=False)
    is_shown(run_summary.summary_text(summary, PIPE))
    table.terminal_text(folder)
    result = result_of(folder)
    out = folder / "exports"
    export(result, list(FORMS), out)
    from outputs import look_at_exports

    look_at_exports(out)
    json.dumps(plain(compare.pairs_json(compare.compare_arms(folder))), allow_nan=False)
    if read_end(folder) is not None:
        record = folder / "record.json"
        expected.write_record(folder, record)
        expected.verdict_text(expected.compare_with_record(folder, record))
        histories.add_outcomes(folder / "history", folder)
        conformance.histories_text(folder / "history")
    for frame in (table.instance_frame, faults.fault_frame):
        for form in ("csv", "json", "markdown"):
            table.to_text(frame(folder), form)
    for row in read_rows(folder):
        find_failure(folder, row.case_id, row.backend, None, row.instance)
        break
    assert info.run
    with suppress(
        BadInput
    ):  # the digests of a synthetic run's cases are made up, so that merging refuses even the good one
        merge(folder / "whole", [folder], ("grammarbench",))


def is_shown(text: str) -> None:
    """No character that a terminal obeys is left in what is printed."""
    for character in text:
        assert character == "\n" or character.isprintable(), f"{character!r} would be printed"


def report(folder: Path) -> None:
    """The page, and what a browser would make of it."""
    from outputs import look_at_page

    look_at_page(write_report(read_inputs([folder]), folder / "report").read_text("utf-8"))


# ----------------------------------------------------------------------------------------------- measurements


def _write_measurement(folder: Path) -> None:
    old = Arm("toy", "1", "", "toy", ("regex",), "bitmask")
    new = replace(old, version="2")
    walks = [[(synthetic.row(backend="toy", backend_version=release.version), b"")] for release in (old, new)]
    synthetic.write_run(folder, walks, synthetic.info((old, new)))
    arms = {
        arm("toy==1", "reference", "toy", "1"): steady(1, seed=1),
        arm("toy==2", "arm", "toy", "2"): steady(1.2, seed=2),
        arm("toy==1 (again)", "a/a", "toy", "1"): steady(1, seed=3),
    }
    write_measurement(folder, arms, forks=2, cases=1)


def read_measured(folder: Path) -> None:
    """The figures, what is concluded from them, and the history that they go into."""
    recorded = read_measurement(folder)
    figures = Figures(recorded)
    comparisons = concluded(folder)
    is_proven(comparisons)
    is_shown(measure_show.text(figures, comparisons, means=True))
    pairs = compare.compare_arms(folder)
    is_shown(compare.pairs_text(pairs))
    json.dumps(plain(compare.pairs_json(pairs)), allow_nan=False)
    compare.gate_pairs(pairs, time=True)
    if recorded.end is not None:
        histories.add_times(folder / "history", folder)
        is_shown(measurements.measurements_text(folder / "history"))


# --------------------------------------------------------------------------------------------------- decoding


def _write_decoding(folder: Path) -> None:
    folder.mkdir(parents=True)
    texts = {"a": (1, 2), "b": (1, 1)}
    settings = {
        Setting("calls", batch=2, texts=2): {
            "alpha": Played(texts, 11.0),
            "beta": Played(texts, 9.0, broken=("b",)),
        }
    }
    record = decoding(settings, plain=Played(texts, 10.0), forks=2, rounds=1)
    with DecodeRecorder(folder, record.setup) as recorder:
        for child in record.children:
            recorder.child(child)
        for batch in record.batches:
            recorder.batch(batch)
        recorder.finish("2026-11-22T01:00:00Z")


def read_decoded(folder: Path) -> None:
    decoded = read_decoding(folder)
    is_shown(decode_show.decoding_text(decoded))
    json.dumps(plain(decoded_as_json(decoded)), allow_nan=False)
    changes = verdicts.compare(folder, None if len(decoded.setup.arms) > 1 else folder)
    verdicts.gate(changes, time=True)
    is_shown(verdicts.changes_text(changes))


# ------------------------------------------------------------------------------------------------------- live


def _write_live(folder: Path) -> None:
    case = synthetic.case(0, [("good", b'"a"', True)])
    synthetic.write_run(
        folder, [[(synthetic.row(case_id=case.id), b"")]], synthetic.info(), [("first", case)]
    )
    loads = (Load("closed", "constrained", 2, concurrency=1), Load("closed", "none", 2, concurrency=1))
    setup = live.LiveSetup(
        "run", "2026-11-22T01:00:00Z", "0", ("grammarbench", "live"), "http://127.0.0.1:1", "openai", "1",
        "model", "chat", "warm",
        Sampling(16, 0.0, "{grammar}", 0), Deadlines(1.0, 1.0, 1.0, 1.0), loads, 2, 0, {"cpu": "x"}, "h",
        (), OBJECTIVES,
    )  # fmt: skip
    with live.LiveRecorder(folder, setup) as recorder:
        for load, side in enumerate(loads):
            for number in range(2):
                base = 10**9 * (load * 2 + number)
                times = (base + 20_000_000, base + 30_000_000, base + 40_000_000)
                heard = Heard(
                    "finished",
                    base,
                    base + 1000,
                    times,
                    times[-1],
                    times[-1] + 5,
                    text=f"{number}",
                    status=200,
                    messages=3,
                )
                answer = Answer(
                    number,
                    load,
                    "first",
                    case.id,
                    side.role,
                    "warm" if side.role == "constrained" else "",
                    base,
                    heard,
                )
                recorder.answer(answer)
                recorder.judgement(answer, live.Judgement("valid"))
        recorder.finish("2026-11-22T01:00:09Z")


def read_live(folder: Path) -> None:
    summary = live_show.LiveSummary(live.read_session(folder))
    live_show.session_text(summary)
    json.dumps(plain(live_show.to_json(summary)), allow_nan=False)
    assert summary.gate.verdict


# ---------------------------------------------------------------------------------------------------- kernels


def _write_kernels(folder: Path) -> None:
    folder.mkdir(parents=True)
    published = ROOT / "results" / "published" / "kernels-cpu-epyc-2vcpu-20261130" / KERNELS
    lines = published.read_bytes().splitlines(keepends=True)
    kept: dict[str, int] = {}
    chosen = []
    for line in lines:
        kind = json.loads(line)["kind"]
        kept[kind] = kept.get(kind, 0) + 1
        if kept[kind] <= 12:
            chosen.append(line)
    (folder / KERNELS).write_bytes(b"".join(chosen))


def read_kernels(folder: Path) -> None:
    read_back = kernels.read(folder)
    kernels_text(read_back, None)
    json.loads(kernels_text(read_back, "json"))
    look_at_csv(kernels_text(read_back, "csv"))
    look_at_markdown(kernels_text(read_back, "markdown"))


FITTED = ("xgrammar", "llguidance")


def _write_growth(folder: Path) -> None:
    """Two axes and the schemas of what is published, of two of its backends: to fit the growth of each takes
    longer than all else of a reader."""
    folder.mkdir(parents=True)
    published = ROOT / "results" / "published" / "growth-cpu-epyc-2vcpu-20261130" / "probe" / GROWTH
    chosen = []
    for line in published.read_bytes().splitlines(keepends=True):
        stored = json.loads(line)
        if stored["kind"] == "growth":
            stored["arms"] = [arm for arm in stored["arms"] if arm["name"] in FITTED]
            line = json.dumps(stored).encode() + b"\n"
        if stored.get("arm", FITTED[0]) not in FITTED:
            continue
        if stored["kind"] != "point" or (stored["axis"] in ("enum", "output") and stored["size"] <= 64):
            chosen.append(line)
    (folder / GROWTH).write_bytes(b"".join(chosen))


def read_grown(folder: Path) -> None:
    grown = read_growth(folder)
    growth_show.text(grown)
    json.dumps(plain([conclusions(grown), many_schemas(grown), caching(grown)]), allow_nan=False)


def growth_report(folder: Path) -> None:
    write_growth(read_growth(folder), folder)


# -------------------------------------------------------------------------------------------------- histories


def _write_history(folder: Path) -> None:
    ratios = histories.noise([1.0] * 4, 1)
    entries = [histories.entry(number, ratio) for number, ratio in enumerate(ratios)]
    histories.write_entries(folder, entries)
    for number in range(2):
        histories.write_conformance(
            folder, number, {"type": {"works": 3, "refused": number}}, version=f"1.{number}"
        )
    for number, path in enumerate(sorted(folder.rglob("*.jsonl.gz"))):
        path.rename(path.with_name(f"f{number}.jsonl.gz"))


def _mutated_within(
    unpack: Callable[[bytes], bytes], pack: Callable[[bytes], bytes]
) -> Callable[[Random, bytes], bytes]:
    """Returns what spoils a packed file: now and then as it lies, else the lines in it."""

    def mutated(random: Random, content: bytes) -> bytes:
        if random.random() < 0.2:
            return mutated_bytes(random, content)
        return pack(mutated_lines(random, unpack(content)))

    return mutated


_mutated_gz = _mutated_within(gzip.decompress, partial(gzip.compress, compresslevel=1))
_mutated_xz = _mutated_within(lzma.decompress, partial(lzma.compress, preset=0))


def read_history(folder: Path) -> None:
    measurements.measurements_text(folder)
    conformance.histories_text(folder)
    measurements.alerts(folder)
    json.dumps(plain(measurements.to_json(folder)), allow_nan=False)


def dashboard(folder: Path) -> None:
    from outputs import look_at_page

    from harness.report.site.dashboard import write_dashboard

    write_dashboard(folder, folder / "site")
    for path in (folder / "site").rglob("*.html"):
        look_at_page(path.read_text("utf-8"))


# ---------------------------------------------------------------------------------------------------- records


def _write_record(folder: Path) -> None:
    _write_run(folder)
    end = read_end(folder)
    assert end is not None
    expected.write_record(folder, folder / "record.json")


def read_record(folder: Path) -> None:
    result = expected.compare_with_record(folder, folder / "record.json")
    expected.verdict_text(result)
    json.dumps(plain(expected.verdict_json(result)), allow_nan=False)


# ------------------------------------------------------------------------------------------------- tokenizers


def _write_byte_level(folder: Path) -> None:
    from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers

    folder.mkdir(parents=True)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    pieces = {piece: number for number, piece in enumerate([*alphabet, "ab", "abc"])}
    tokenizer = Tokenizer(models.BPE(pieces, [("a", "b"), ("ab", "c")]))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFC()])
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_tokens([AddedToken("<tool>", special=False)])
    tokenizer.add_special_tokens(["<end>"])
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<end>"}))
    (folder / "config.json").write_text(json.dumps({"vocab_size": 300, "eos_token_id": [259]}))
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": 259}))
    (folder / "special_tokens_map.json").write_text(json.dumps({"eos_token": {"content": "<end>"}}))


def _write_metaspace(folder: Path) -> None:
    from tokenizers import Tokenizer, decoders, models, normalizers

    folder.mkdir(parents=True)
    pieces = [
        "<unk>",
        "<s>",
        "</s>",
        *(f"<0x{byte:02X}>" for byte in range(256)),
        "▁",
        "a",
        "b",
        "ab",
        "▁a",
        "é",
    ]
    ids = {piece: token for token, piece in enumerate(pieces)}
    model = models.BPE(ids, [("a", "b"), ("▁", "a")], unk_token="<unk>", byte_fallback=True, fuse_unk=True)
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    tokenizer.add_special_tokens(["<s>", "</s>"])
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "special_tokens_map.json").write_text(json.dumps({"eos_token": {"content": "</s>"}}))


def _write_tiktoken(folder: Path) -> None:
    import base64

    folder.mkdir(parents=True)
    tokens = [*(bytes([byte]) for byte in range(256)), b"ab", b"abc"]
    lines = [base64.b64encode(token) + b" %d\n" % rank for rank, token in enumerate(tokens)]
    (folder / "mine.tiktoken").write_bytes(b"".join(lines))


def _mutated_ranks(random: Random, content: bytes) -> bytes:
    if random.random() < 0.5:
        return mutated_bytes(random, content)
    lines = content.splitlines()
    place = random.randrange(len(lines))
    token = lines[place].split()[0]
    rank = random.choice(
        (b"-1", b"1e3", b"999999999999", b"4294967296", b"4294967295", b"257", b"0", b"9" * 5000, b"1_0", b"")
    )
    lines[place] = token + b" " + rank
    return b"\n".join(lines) + b"\n"


def read_vocabulary(name: str) -> None:
    vocabulary = load_vocabulary(name)
    for text in (b'{"a": "abc \xc3\xa9"}', b"\xff", " \u2581\U0001f600".encode()):
        try:
            tokens = vocabulary.encode(text)
        except ValueError:
            continue  # it has no token for a byte, which its readers ask about
        assert vocabulary.decode(tokens) == text
    assert vocabulary.sha256 and 0 <= vocabulary.eos_token < vocabulary.size


# ----------------------------------------------------------------------------------------------------- suites

_GOOD_SUITES: dict[str, Any] = {
    "Github---o1.json": {
        "description": "x",
        "meta": {"features": ["enum"], "raw_features": {"type": 2}},
        "schema": {
            "type": "object",
            "properties": {"a": {"enum": [1, "b"]}},
            "$defs": {"x": {"pattern": "^a+$"}},
        },
        "tests": [
            {"description": "good", "valid": True, "data": {"a": 1}},
            {"valid": False, "data": [], "python_error": "no"},
        ],
    },
    "draft7/const.json": [
        {
            "description": "const",
            "schema": {"const": 2},
            "tests": [{"description": "same", "data": 2, "valid": True}],
        },
        {
            "description": "ref",
            "schema": {"$ref": "#/x", "x": {}},
            "tests": [{"description": "any", "data": None, "valid": True}],
        },
    ],
    "bare.json": {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "array",
        "items": {"minimum": 1e3, "multipleOf": 0.5},
    },
    "forms.json": [
        {
            "regex": "a{2,3}[b-d]\\d",
            "tests": [{"text": "aab1", "valid": True}, {"bytes": "c080", "valid": False}],
        },
        {
            "ebnf": 'root ::= "a" b?\nb ::= [x-z]{1,3} | "é"',
            "tests": [{"text": "a", "valid": None}],
            "tags": ["x"],
            "options": {},
        },
        {"choice": ["a", "ab"], "tests": [{"data": "a"}], "notes": "n"},
        {
            "structural_tag": {
                "triggers": ["<f"],
                "structures": [{"begin": "<f>", "schema": {"type": "null"}, "end": "</f>"}],
            },
            "tests": [{"text": "<f>null</f>", "valid": True}],
        },
    ],
    "tools.json": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}],
}
_GOOD_LINES = [
    {"suite": "mine", "version": "3", "description": "d"},
    {
        "description": MARKUP,
        "regex": "a",
        "tests": [{"text": "a", "valid": True}],
        "options": {"draft": "draft7"},
    },
    {"description": "b", "schema": {"type": "string"}, "tests": [{"data": "é\ud800"}]},
]


def _write_suites(folder: Path) -> None:
    for name, value in _GOOD_SUITES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(json.dumps(value))
    (folder / "mine.jsonl").write_text("".join(json.dumps(line) + "\n" for line in _GOOD_LINES))


def read_suite(folder: Path) -> None:
    for source in (str(folder), *(str(path) for path in sorted(folder.rglob("*.json*")))):
        for case in cases_of_suite(find_suite(source)):
            assert case_from_line(case_to_line("suite", "1", case)) == ("suite", "1", case)
            if case.grammar.dialect == "json_schema":
                deep(partial(check_schema, case.grammar.text, case.options.get("draft")), case.name)


SEEDS: dict[str, Seed] = {
    "rows": Seed(
        _write_run,
        {"rows.jsonl": mutated_lines, "cases.jsonl": mutated_lines, "samples.i64": _mutated_samples},
        read_run,
        report,
    ),
    "published run": Seed(_write_published, {PACKED: _mutated_xz}, read_published),
    "measurement": Seed(
        _write_measurement,
        {"rounds.jsonl": mutated_lines, "rounds.i64": mutated_bytes},
        read_measured,
        report,
    ),
    "decoding": Seed(
        _write_decoding, {"decode.jsonl": mutated_lines, "decode.i64": mutated_bytes}, read_decoded, report
    ),
    "live": Seed(_write_live, {"live.jsonl": mutated_lines, "live.i64": mutated_bytes}, read_live),
    "kernels": Seed(_write_kernels, {KERNELS: mutated_lines}, read_kernels, report),
    "growth": Seed(_write_growth, {GROWTH: mutated_lines}, read_grown, growth_report),
    "history": Seed(
        _write_history,
        {f"{'h' * 12}/{'w' * 12}/f{number}.jsonl.gz": _mutated_gz for number in (2, 3)}
        | {"conformance/f0.jsonl.gz": _mutated_gz},
        read_history,
        dashboard,
    ),
    "record": Seed(_write_record, {"record.json": mutated_json}, read_record),
    "byte-level tokenizer": Seed(
        _write_byte_level,
        dict.fromkeys(
            ("tokenizer.json", "tokenizer_config.json", "config.json", "generation_config.json"), mutated_json
        ),
        lambda folder: read_vocabulary(f"hf:{folder}"),
    ),
    "metaspace tokenizer": Seed(
        _write_metaspace,
        dict.fromkeys(("tokenizer.json", "special_tokens_map.json"), mutated_json),
        lambda folder: read_vocabulary(f"hf:{folder}"),
    ),
    "tiktoken file": Seed(
        _write_tiktoken,
        {"mine.tiktoken": _mutated_ranks},
        lambda folder: read_vocabulary(f"tiktoken:{folder / 'mine.tiktoken'}"),
    ),
    "suite": Seed(
        _write_suites,
        {name: mutated_json for name in _GOOD_SUITES} | {"mine.jsonl": mutated_lines},
        read_suite,
    ),
}
