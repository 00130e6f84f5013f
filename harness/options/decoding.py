"""The options of decode."""

from __future__ import annotations

from pathlib import Path

from harness.options.kinds import Verbs, not_negative, positive, positive_number, whole


def add(verbs: Verbs) -> None:
    """The command and its options."""
    decode = verbs.add_parser("decode", help="TTFT, TPOT and throughput with a real model loop, beside the same loop without a grammar")
    switch = ["on", "off"]
    decode.add_argument(
        "workloads", nargs="*", metavar="WORKLOAD", help="a workload's name, a suite, a folder or a file (default: the profile's)"
    )
    decode.add_argument("--backends", required=True, metavar="A,B==1.2,C:OPTION=VALUE", help="as in run")
    decode.add_argument("--profile", choices=["quick", "default", "full"], default="quick", help="how much (default: quick)")
    decode.add_argument("--out", type=Path, metavar="DIR", help="the record's folder (default: results/runs/<run>)")
    decode.add_argument(
        "--timeout", type=positive_number, default=120.0, metavar="S", help="seconds for one run of a setting (default: 120)"
    )
    decode.add_argument("--memory", type=positive_number, default=16.0, metavar="GB", help="resident memory of a child (default: 16)")
    decode.add_argument("--forks", type=positive, default=3, metavar="N", help="fresh processes of every arm (default: 3)")
    decode.add_argument("--rounds", type=positive, metavar="R", help="of each fork, after a cold one (default: the profile's)")

    model = decode.add_argument_group("the model")
    model.add_argument(
        "--model",
        default="tiny",
        metavar="M",
        help="a shape with random weights (tiny, 0.5b, 1b, 8b), a folder, or a hub name (default: tiny)",
    )
    model.add_argument("--vocabulary", metavar="V", help="as in run, one (default: tekken for a shape, a real model's own)")
    model.add_argument("--device", choices=["auto", "cpu", "cuda"], default="auto", help="auto: a GPU where there is one (default)")
    model.add_argument(
        "--dtype", choices=["float32", "bfloat16", "float16"], help="of the weights (default: float32 on a CPU, else bfloat16)"
    )

    load = decode.add_argument_group("the load")
    load.add_argument("--strategies", metavar="A,B", help="of stepwise, jump_forward, interleaved, speculative (default: the profile's)")
    load.add_argument("--batch", metavar="N,N", help="rows of the batch (default: the profile's)")
    load.add_argument("--texts", type=positive, metavar="N", help="requests of a run; never fewer than rows (default: the profile's)")
    load.add_argument("--prompt-tokens", type=positive, metavar="N", help="of each request (default: the profile's)")
    load.add_argument("--limit", type=positive, metavar="N", help="output tokens at most (default: as many as the text to replay has)")
    load.add_argument(
        "--mode",
        choices=["replay", "greedy", "seeded"],
        default="replay",
        help="write the workload's text, or what the model says (default: replay)",
    )
    load.add_argument("--objectives", metavar="O", help="of goodput, milliseconds: 'ttft:500 tpot:50 e2e:2000' (default: ttft:500 tpot:50)")
    load.add_argument("--rate", type=positive_number, metavar="R", help="requests a second, as an open loop (default: all at once)")
    load.add_argument("--arrivals", choices=["poisson", "gamma", "fixed"], default="poisson", help="with --rate (default: poisson)")

    masks = decode.add_argument_group("masks")
    masks.add_argument("--overlap", choices=switch, default="on", help="fill them while the model computes (default: on)")
    masks.add_argument("--fill-threads", type=positive, default=1, metavar="N", help="that fill (default: 1)")
    masks.add_argument(
        "--batch-fill", choices=switch, default="off", help="one call for all rows, with the backend's threads (default: off)"
    )
    masks.add_argument(
        "--kernel", default="", metavar="K", help="what applies them: a kernel of the backend, or own: its first (default: torch)"
    )

    compiling = decode.add_argument_group("compiling")
    compiling.add_argument("--cache", choices=switch, default="on", help="keep compiled grammars (default: on)")
    compiling.add_argument(
        "--compile-workers", type=whole, default=1, metavar="N", help="threads; 0: the loop compiles and waits (default: 1)"
    )
    compiling.add_argument(
        "--compile-timeout", type=positive_number, default=60.0, metavar="S", help="seconds until a compile is given up (default: 60)"
    )
    compiling.add_argument("--poll-interval", type=not_negative, default=0.0, metavar="S", help="how long a poll waits (default: 0)")
    compiling.add_argument("--most-polls", type=positive, metavar="N", help="until a compile is given up (default: no limit)")
    compiling.add_argument(
        "--fallback",
        choices=["unconstrained", "abort"],
        default="unconstrained",
        help="of a request whose compile is given up (default: unconstrained)",
    )

    drafts = decode.add_argument_group("drafts")
    drafts.add_argument(
        "--draft-tokens", type=positive, default=4, metavar="N", help="proposed at once by the strategy speculative (default: 4)"
    )
