"""The options of measure, doctor, compare, history, bisect and kernels."""

from __future__ import annotations

from pathlib import Path

from harness.options.kinds import Verbs, effort, positive, positive_number


def add(verbs: Verbs) -> None:
    """Each command and its options."""
    measure = verbs.add_parser("measure", help="times that survive a noisy machine: arms interleaved, in several processes, with intervals")
    measure.add_argument("suites", nargs="*", metavar="SUITE", help="as in run (default: the profile's)")
    measure.add_argument("--backends", required=True, metavar="A,B==1.2,...", help="as in run; two versions of one backend are two arms")
    measure.add_argument("--reference", metavar="ARM", help="the arm that all others are held against (default: the first)")
    measure.add_argument("--vocabulary", default="tekken", metavar="V", help="as in run, one (default: tekken)")
    measure.add_argument("--profile", choices=["quick", "default", "full"], default="quick", help="how much (default: quick)")
    measure.add_argument(
        "--forks",
        type=positive,
        metavar="N",
        help="fresh processes of every arm, exactly so many (default: the profile's, and more while undecided)",
    )
    measure.add_argument("--out", type=Path, metavar="DIR", help="the run's folder (default: results/runs/<run>)")
    measure.add_argument("--timeout", type=positive_number, metavar="S", help="seconds for a compile and a walk (default: the profile's)")
    measure.add_argument("--memory", type=positive_number, default=4.0, metavar="GB", help="resident memory of a child (default: 4)")
    measure.add_argument("--means", action="store_true", help="show what a ratio of means would say, too")

    doctor = verbs.add_parser("doctor", help="what can be concluded from times on this machine: its settings and its noise")
    doctor.add_argument("--backend", metavar="B", help="the backend that is measured against itself (default: the first that is installed)")
    doctor.add_argument("--vocabulary", default="tekken", metavar="V", help="as in run, one (default: tekken)")
    doctor.add_argument("--forks", type=positive, metavar="N", help="fresh processes of both arms (default: 5 to 8)")
    doctor.add_argument("--out", type=Path, metavar="DIR", help="the run's folder (default: results/runs/<run>)")

    compare = verbs.add_parser("compare", help="what came out differently and what takes another time: two arms of a run, or two runs")
    compare.add_argument("base", type=Path, metavar="BASE", help="a run's folder")
    compare.add_argument("head", type=Path, nargs="?", metavar="HEAD", help="another one (default: the versions within BASE)")
    compare.add_argument("--gate", action="store_true", help="exit code 1 if an outcome or a count is worse, 4 if nothing can be said")
    compare.add_argument("--time", action="store_true", help="the gate fails on a proven slowdown too, and with 4 where none can be proven")
    compare.add_argument("--means", action="store_true", help="show what a ratio of means would say, too")
    compare.add_argument("--html", type=Path, metavar="FILE", help="write a page with the forest plot")

    history = verbs.add_parser("history", help="measurements over time, and the alert rule")
    history.add_argument("history", type=Path, metavar="DIR", help="the folder that holds them")
    history.add_argument("--add", type=Path, metavar="RUN", help="append a run: its measurement, and how many cases of each kind passed")
    history.add_argument("--gate", action="store_true", help="exit code 1 if a series is in alert")

    bisect = verbs.add_parser("bisect", help="which release of a backend was the first to show an outcome?")
    bisect.add_argument("backend", metavar="BACKEND", help="a backend with its options, without a version")
    bisect.add_argument("versions", metavar="GOOD..BAD", help="the last version known not to show it, and one that does")
    bisect.add_argument("--case", required=True, metavar="CASE", help="a case's name or id")
    bisect.add_argument("--suite", action="append", metavar="SUITE", help="where the case is; may be repeated (default: all our suites)")
    bisect.add_argument("--vocabulary", default="probe", metavar="V", help="the vocabulary to walk it with (default: probe)")
    bisect.add_argument(
        "--effort", type=effort, default=2, metavar="N", help="places of the case that each check looks at; 0: no checks (default: 2)"
    )
    bisect.add_argument(
        "--timeout", type=positive_number, default=10.0, metavar="S", help="seconds for a compile and for each walk (default: 10)"
    )
    bisect.add_argument(
        "--slower", metavar="METRIC", help="search for a slowdown instead: compile, ttfm, cold_fill, fill, accept or matcher_new"
    )

    kernels = verbs.add_parser("kernels", help="apply masks to logits with each backend's own kernels: right or wrong, then how fast")
    kernels.add_argument("--backends", metavar="A,B", help="whose kernels (default: those of all that are installed)")
    kernels.add_argument("--device", choices=["cpu", "cuda"], default="cpu", help="where the logits are (default: cpu)")
    kernels.add_argument("--quick", action="store_true", help="fewer sizes and repetitions, one thread")
    where = kernels.add_mutually_exclusive_group(required=True)
    where.add_argument("--out", type=Path, metavar="DIR", help="the folder in which kernels.jsonl is written")
    where.add_argument("--show", type=Path, metavar="DIR", help="measure nothing; print what is stored in this folder")
    kernels.add_argument("--format", choices=["csv", "json", "markdown"], help="print it in this form (default: tables)")
