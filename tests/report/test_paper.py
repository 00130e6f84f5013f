"""What a paper takes from runs: charts as SVG and PDF, tables as LaTeX."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as xml

import pytest
import report_folders
import synthetic
from hypothesis import example, given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure
from matplotlib.text import Text
from synthetic import HOSTILE, synthetic_run

from harness.cli.main import main
from harness.outcomes.result import result_of
from harness.report.figures import printing
from harness.report.page.inputs import Inputs, read_inputs
from harness.report.page.page import write_report
from harness.report.paper.latex import ACCENTED, escape, table
from harness.report.paper.tables import tables
from harness.report.paper.write import figures
from harness.report.tables.time import time_frame
from harness.rows.folder import ROWS
from harness.rows.store import PACKED, packed, read_rows
from harness.text import duration, one_line

LATEX = shutil.which("pdflatex")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A run with everything that can go wrong, a measurement, a decoding and kernels, under hostile names."""
    top = tmp_path_factory.mktemp("paper")
    return [
        synthetic_run(top / "run", cases=40),
        report_folders.measured_run(synthetic, top / "measured", 1.2),
        report_folders.write_decoding(top / "decoded", report_folders.played()),
        report_folders.write_kernels(top / "kernels", evil=HOSTILE[0]),
    ]


@pytest.fixture(scope="module")
def inputs(folders: list[Path]) -> Inputs:
    return read_inputs(folders)


@dataclass(frozen=True)
class Shown:
    """A text of a chart that is drawn."""

    text: str
    size: float
    is_whole: bool
    """Does it stand inside what is saved of the chart?"""


@pytest.fixture(scope="module")
def texts() -> list[Shown]:
    """Those of all charts as SVG, once these are drawn."""
    return []


@pytest.fixture(scope="module")
def drawn(inputs: Inputs, texts: list[Shown]) -> dict[str, bytes]:
    save = printing._saved

    def look(figure: Figure, form: str, title: str) -> bytes:
        if form == "svg":
            texts.extend(_texts_of(figure))
        return save(figure, form, title)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(printing, "_saved", look)
        return figures(inputs, ("svg", "pdf"))


def _texts_of(figure: Figure) -> Iterator[Shown]:
    figure.draw_without_rendering()
    saved = figure.get_tightbbox().padded(printing.MARGIN).transformed(figure.dpi_scale_trans)
    for text in figure.findobj(Text):
        assert isinstance(text, Text)
        box = text.get_window_extent()
        if text.get_text().strip() and text.get_visible() and not _is_off_the_axis(text):
            is_whole = saved.x0 <= box.x0 and box.x1 <= saved.x1 and saved.y0 <= box.y0 and box.y1 <= saved.y1
            yield Shown(text.get_text(), float(text.get_fontsize()), is_whole)


def _is_off_the_axis(text: Text) -> bool:
    """Is it the label of a tick beyond the end of its axis, which is not drawn?"""
    figure = text.get_figure()
    assert figure is not None
    return any(
        tick.label1 is text and not low <= tick.get_loc() <= high
        for axes in figure.axes
        for axis in (axes.xaxis, axes.yaxis)
        for low, high in [sorted(axis.get_view_interval())]
        for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks())
    )


# ------------------------------------------------------------------------------------------------- the charts


def test_every_chart_of_the_page_is_a_file(inputs: Inputs, drawn: dict[str, bytes], tmp_path: Path) -> None:
    page = write_report(inputs, tmp_path).read_text("utf-8")
    on_page = set(re.findall(r'<title id="(\w+)-title">', page))
    assert len(on_page) > 10
    assert set(drawn) == {f"figure-{name}.{form}" for name in on_page for form in ("svg", "pdf")}


def test_a_drawing_stands_alone(drawn: dict[str, bytes]) -> None:
    for name, content in drawn.items():
        if name.endswith(".pdf"):
            assert content.startswith(b"%PDF-") and b"/Type3" not in content, "publishers refuse Type 3"
            assert b"/CreationDate" not in content
        else:
            said = content.decode("utf-8")
            assert xml.fromstring(said).tag == "{http://www.w3.org/2000/svg}svg"
            assert "var(--" not in said and "<text" not in said, "it needs no style sheet and no font"
            assert "<script" not in said


def test_a_drawing_has_the_names_of_its_lines(inputs: Inputs, drawn: dict[str, bytes]) -> None:
    """matplotlib writes the text of what it draws as paths into a comment beside them."""
    labels = [line.label for line in inputs.lines if line.arm.solves_any]
    for name in ("figure-fill.svg", "figure-compile.svg"):
        said = drawn[name].decode("utf-8")
        assert labels and all(f"<!-- {label} -->" in said for label in labels)
    assert "<!-- no grammar -->" in drawn["figure-tpot0.svg"].decode("utf-8")
    for name, said in (("compile", "Compile time per case"), ("fill0", "Fill time per token, cold, suite")):
        axis = re.search(rf"<!-- ({said}.*?) -->", drawn[f"figure-{name}.svg"].decode("utf-8"))
        assert axis and axis[1].endswith(", walked once"), "what is drawn to the right, and whence"


def test_a_run_published_without_samples_has_first_masks_and_says_so(
    folders: list[Path], tmp_path: Path
) -> None:
    """In the chart of all suites, and in those of one suite."""
    (tmp_path / PACKED).write_bytes(packed((folders[0] / ROWS).read_bytes()))
    drawn = figures(read_inputs([tmp_path]), ("svg",))
    for name in ("fill", "fill0"):
        said = drawn[f"figure-{name}.svg"].decode("utf-8")
        assert "<!-- First fill of each case, cold" in said and "Fill time" not in said


@pytest.mark.long
def test_the_same_run_gives_the_same_bytes(inputs: Inputs) -> None:
    """The charts of `drawn` were laid out once more for their texts, which moves them by a hair."""
    assert figures(inputs, ("svg", "pdf")) == figures(inputs, ("svg", "pdf"))


def test_no_text_is_cut_or_too_small(drawn: dict[str, bytes], texts: list[Shown]) -> None:
    assert [each for each in texts if not each.is_whole or each.size < 8] == []
    assert len(texts) > 200


@pytest.mark.long
def test_a_page_that_is_written_afterwards_is_as_before(
    inputs: Inputs, folders: list[Path], tmp_path: Path
) -> None:
    before = write_report(inputs, tmp_path / "before").read_bytes()
    figures(inputs, ("svg",))
    assert write_report(inputs, tmp_path / "after").read_bytes() == before


# ------------------------------------------------------------------------------------------------- the tables

TEXT_OF = {
    "textbackslash": "\\", "textasciitilde": "~", "textasciicircum": "^", "textless": "<", "textgreater": ">",
    "textbar": "|", "textquotesingle": "'", "textasciigrave": "`", "textmu": "µ", "texttimes": "×",
    "textperiodcentered": "·", "ldots": "…", "textendash": "–",
}  # fmt: skip
"""What LaTeX prints for a command, by its name (the LaTeX 2e reference, and its companion on symbols)."""

TOKEN = re.compile(r"\\char34\{\}|\\([a-zA-Z]+)\{\}|\\([&%$#_{}])|\{([\[*])\}|\{\}|([^\\{}&%$#_~^<>|\"'`])")
"""What may stand in escaped text: a command, an escaped character, one in a group, nothing, one as it is."""


def read_back(latex: str) -> str:
    """Returns what LaTeX prints, for text in which nothing else stands than what may."""
    said, place = "", 0
    while place < len(latex):
        match = TOKEN.match(latex, place)
        assert match, f"{latex[place : place + 20]!r} is markup"
        command, escaped, grouped, plain = match.groups()
        said += '"' if match[0].startswith("\\char") else TEXT_OF[command] if command else ""
        said += escaped or grouped or plain or ""
        place = match.end()
    return said


@settings(deadline=None)
@given(st.text(max_size=60) | st.text("\\{}[]*-,&%$#_^~`'\"?! ab", max_size=20))
@example("\\input{/etc/passwd}")
@example("[1mm] ,, --- ''``")
@example("*")
@example("^^5cinput")
def test_latex_prints_the_text_as_it_is(text: str) -> None:
    escaped = escape(text, None)
    assert escaped.isprintable()
    shown = "".join(
        one
        if one.isascii() or one in "µ×·…–" or re.match(f"[{ACCENTED}]", one)
        else one.encode("unicode_escape").decode()
        for one in one_line(text, spelled=True)
    )
    assert read_back(escaped) == shown
    assert not re.search("--|,,", escaped), "they are drawn as one character"
    assert not re.match(r" *[\[*]", escaped), "it would be an option of the line before"


def test_latin_letters_stay_as_they_are() -> None:
    assert escape("Münchén Łódź") == "Münchén Łódź"
    assert escape("naïve ą中×") == r"naïve \textbackslash{}u0105\textbackslash{}u4e2d\texttimes{}"


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.text(max_size=8), st.text(max_size=8)), min_size=1, max_size=4))
def test_a_table_has_a_line_for_each_line(cells: list[tuple[str, str]]) -> None:
    made = table(
        ["a", "b"], [[escape(one) for one in line] for line in cells], caption="c", label="l", left=1
    )
    body = made.partition("\\midrule\n")[2].partition("\n\\bottomrule")[0]
    assert body.splitlines() == [f"{escape(one)} & {escape(other)} \\\\" for one, other in cells]
    assert "\\begin{tabular}{lr}" in made and "\\label{tab:l}" in made


def test_the_outcomes_are_those_of_the_result(tmp_path: Path) -> None:
    run = synthetic_run(tmp_path / "run", cases=60, hostile=False)
    made = tables(read_inputs([run]))["table-outcomes.tex"].decode()
    result = result_of(run)
    heads = ["Backend", "Cases", "Judged", "Works", "Breaks", "Too slow", "Other fault", "Refused"]
    heads.append("Not measured")
    head = made.partition("\\toprule\n")[2].partition("\n")[0]
    shown = re.sub(r"\\shortstack\[r\]\{(.*?)\}", lambda words: words[1].replace(" \\\\", ""), head)
    assert shown == " & ".join([*heads, r"Conformance (\%) \\"]), "what no case came to has no column"
    assert not any(count.silently_wrong + count.valid_refused + count.not_judged for count in result.counts)
    for arm in result.arms:
        counts = [count for count in result.counts if count.arm == arm.name]
        (share,) = [
            figure.value
            for figure in result.figures
            if (figure.arm, figure.name) == (arm.name, "conformance")
        ]
        name = escape(f"{arm.backend}{':' if arm.options else ''}{arm.options}")
        numbers = [
            sum(getattr(count, head.replace(" ", "_").lower()) for count in counts) for head in heads[1:]
        ]
        (line,) = [line for line in made.splitlines() if line.startswith(f"{name} & ")]
        assert line.startswith(" & ".join([name, *map(str, numbers), f"{share * 100:.1f} ["]))
    assert "99\\% interval (Wilson)" in made and "alpha 1.2.3, beta 0.4" in made


@pytest.mark.parametrize("names", [(), ("gamma",), ("gamma", "delta", "epsilon", "zeta")])
def test_backends_that_solve_none_are_not_among_all_that_solve(names: Sequence[str], tmp_path: Path) -> None:
    groups = []
    for number in range(20):
        for name in ("alpha", "beta", *names):
            case = {"case": f"case {number}", "case_id": f"{number:012x}", "accepted": name not in names}
            groups.append([(synthetic.row(backend=name, **case), b"")])
    arms = synthetic.arms_of(row for ((row, _),) in groups)
    run = synthetic.write_run(tmp_path / "run", groups, synthetic.info(arms))
    made = tables(read_inputs([run]))["table-times.tex"].decode()
    told = {0: "", 1: ", but for gamma, which solves none"}
    but = told.get(len(names), ", but for gamma, delta, epsilon and 1 more, which solve none")
    assert f"on the cases that all backends solve{but} (20/20)." in made


def test_times_are_compared_on_the_cases_that_all_solve(tmp_path: Path) -> None:
    run = report_folders.write_rows(synthetic, tmp_path / "run", cases=120, wrong=20)
    made = tables(read_inputs([run]))["table-times.tex"].decode()
    assert "on the cases that all backends solve (100/120)" in made
    (line,) = [line for line in made.splitlines() if line.startswith("compile & alpha")]
    cells = line.removesuffix(" \\\\").split(" & ")
    rows = [row for row in read_rows(run) if row.backend == "alpha" and int(row.case_id, 16) >= 20]
    ns = [row.compile_ns or 0 for row in rows]
    assert cells[2:4] == ["100", escape(duration(sorted(ns)[49]))]
    assert "\\textendash{}" in cells[7]
    assert cells[5] == "\\textendash{}", "one value lies beyond the p99"
    few = report_folders.write_rows(synthetic, tmp_path / "few", cases=4)
    made = tables(read_inputs([few]))["table-times.tex"].decode()
    assert "Values & p50 & Max. &" in made, "a percentile that no line has needs no column"


def test_measured_times_are_the_measurements_and_not_those_of_its_walks(tmp_path: Path) -> None:
    run = report_folders.measured_run(synthetic, tmp_path / "run", 1.2)
    made = tables(read_inputs([run]))["table-times.tex"].decode()
    for arm in ("alpha · 1", "alpha · 2"):
        (line,) = [line for line in made.splitlines() if line.startswith(f"compile & {escape(arm)} &")]
        (told,) = time_frame(run).query(
            f"arm == 'alpha=={arm[-1]}' and figure == 'compile per case' and cases == 'common'"
        )["p50"]
        assert line.split(" & ")[3] == escape(duration(told))
    assert "Identical code was measured as equal (A/A)." in made and "(measured)" not in made
    assert "the median over forks and rounds" in made and "each call made once" not in made
    walked = report_folders.write_rows(synthetic, tmp_path / "walked", cases=4)
    made = tables(read_inputs([walked, run]))["table-times.tex"].decode()
    assert "\ncompile & beta &" in made and "\ncompile (measured) & alpha" in made
    assert "the median over forks and rounds" in made and "each call made once" in made
    report_folders.measured_run(synthetic, tmp_path / "noisy", 1.2, control=1.3)
    made = tables(read_inputs([tmp_path / "noisy"]))["table-times.tex"].decode()
    assert "Unproven: identical code was not measured as equal" in made


def test_a_caption_says_what_must_be_known_first(tmp_path: Path) -> None:
    suites: dict[str, Any] = {
        "first": {"version": "1", "sha256": "cd", "cases": 1, "instances": 1, "cases_in_all": 407}
    }
    run = synthetic.write_run(
        tmp_path / "run", [[(synthetic.row(), b"")]], synthetic.info(suites=suites), complete=False
    )
    made = tables(read_inputs([run]))["table-outcomes.tex"].decode()
    assert "a sample: 1 of 407 cases of first" in made
    assert "Incomplete, so that nothing may be concluded" in made


def test_the_caption_of_a_live_session_has_the_deadline_of_a_request(tmp_path: Path) -> None:
    served = {"gpt-x": {"size": 0, "sha256": ""}}
    info = synthetic.info(profile="live", argv=("live", "http://x"), timeout_s=120.0, vocabularies=served)
    run = synthetic.write_run(tmp_path / "run", [[(synthetic.row(vocabulary="gpt-x"), b"")]], info)
    made = tables(read_inputs([run]))["table-outcomes.tex"].decode()
    assert "; model gpt-x; at most 120 s for a request." in made


@pytest.mark.skipif(LATEX is None, reason="no pdflatex on this machine")
@pytest.mark.parametrize("encoding", ["OT1", "T1"])
def test_latex_sets_the_tables(inputs: Inputs, encoding: str, tmp_path: Path) -> None:
    hostile = [[escape(one), escape(f"[1mm]{one}")] for one in HOSTILE]
    made = [table(["a", "b"], hostile, caption=escape(HOSTILE[0], None), label="hostile", left=2)]
    made += [content.decode() for content in tables(inputs).values()]
    document = "\n".join(made)
    (tmp_path / "paper.tex").write_text(
        f"\\documentclass{{article}}\\usepackage[{encoding}]{{fontenc}}\\usepackage{{booktabs}}"
        f"\\begin{{document}}{document}\\end{{document}}"
    )
    words = [str(LATEX), "-halt-on-error", "-interaction=nonstopmode", "-no-shell-escape", "paper.tex"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, timeout=100)
    assert done.returncode == 0, done.stdout[-2000:]


# ------------------------------------------------------------------------------------------------ the command


def test_report_writes_what_a_paper_takes(
    folders: list[Path],
    drawn: dict[str, bytes],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of several folders at once, as the page is. Drawing them once more is spared."""

    def drawn_before(inputs: Inputs, forms: Sequence[str]) -> dict[str, bytes]:
        assert inputs.folders == tuple(folders[:3]) and tuple(forms) == ("svg", "pdf")
        return dict(drawn)

    monkeypatch.setattr("harness.report.paper.write.figures", drawn_before)
    words = ["report", *map(str, folders[:3]), "--format", "svg,pdf,latex", "--out", str(tmp_path)]
    assert main(words) == 0
    told = capsys.readouterr().out
    written = {path.name for path in tmp_path.iterdir()}
    assert {"figure-pareto.pdf", "figure-gains0.svg", "table-outcomes.tex", "table-times.tex"} <= written
    assert all(f"written: {tmp_path / name}" in told for name in written)
    assert {Path(name).suffix for name in written} == {".svg", ".pdf", ".tex"}


def test_what_is_incomplete_is_written_and_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = synthetic_run(tmp_path / "run", cases=3, complete=False)
    assert main(["report", str(run), "--format", "latex", "--out", str(tmp_path / "out")]) == 3
    assert "is incomplete (no end); what is written shows it" in capsys.readouterr().err


def test_what_has_no_table_is_told(
    folders: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, decoded, out = folders[0], folders[2], tmp_path / "out"
    assert main(["report", str(decoded), "--format", "latex", "--out", str(out)]) == 2
    error = capsys.readouterr().err
    assert f"{decoded}: nothing here that --format latex can write" in error and not out.exists()
    assert main(["report", str(run), str(decoded), "--format", "latex", "--out", str(out)]) == 0
    assert capsys.readouterr().err == f"grammarbench: these have no table in LaTeX: {decoded}\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--format", "ltx"], 'did you mean "latex"?'),
        (["--format", "pdf", "--time"], "--time has no effect on the page"),
        (["--format", "svg,csv", "OTHER"], "takes one run"),
        (["--format", "latex", "--out", "/proc/nowhere"], "cannot be written"),
    ],
)
def test_bad_input_is_one_line(
    folders: list[Path], arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [str(folders[0]) if word == "OTHER" else word for word in arguments]
    assert main(["report", str(folders[0]), *given]) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1
