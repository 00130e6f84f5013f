"""The options of live."""

from __future__ import annotations

from pathlib import Path

from harness.options.kinds import Verbs, not_negative, positive, positive_number, whole


def add(verbs: Verbs) -> None:
    """The command and its options."""
    live = verbs.add_parser("live", help="cases against a live OpenAI-compatible server: every output judged, TTFT, TPOT, goodput")
    live.add_argument("url", nargs="?", metavar="URL", help="http(s)://HOST:PORT of the server")
    live.add_argument("suites", nargs="*", metavar="SUITE", help="as in run (default: speed)")
    live.add_argument("--show", type=Path, metavar="RUN", help="ask nothing; print what is stored in this folder")
    live.add_argument("--out", type=Path, metavar="DIR", help="the run's folder (default: results/runs/<run>)")
    live.add_argument(
        "--gate", action="store_true", help="exit code 1 if an output is invalid or a request failed, 4 if nothing could be judged"
    )

    server = live.add_argument_group("the server")
    server.add_argument(
        "--dialect",
        metavar="D",
        help="openai, vllm, vllm-guided, sglang, llama.cpp or llama-cpp-python (default: what the server says it is)",
    )
    server.add_argument("--model", metavar="M", help="the model's name (default: the first that the server lists)")
    server.add_argument("--endpoint", choices=["chat", "completions"], default="chat", help="which of the interfaces (default: chat)")
    server.add_argument(
        "--key-variable", metavar="NAME", help="the environment variable that holds the API key (default: GRAMMARBENCH_API_KEY)"
    )

    load = live.add_argument_group("the load, one after the other where several are named (default: --concurrency 1)")
    load.add_argument("--requests", type=positive, metavar="N", help="of each load (default: 100, or a trace's length)")
    load.add_argument("--rate", metavar="R,R", help="requests a second, whether or not the server is ready for them (an open loop)")
    load.add_argument("--arrivals", choices=["poisson", "gamma", "fixed"], default="poisson", help="with --rate (default: poisson)")
    load.add_argument("--burstiness", type=positive_number, metavar="B", help="of gamma: below 1 bursts, above it evener (default: 1)")
    load.add_argument("--trace", type=Path, metavar="FILE", help="arrivals that were recorded: seconds after the start, one a line")
    load.add_argument("--concurrency", metavar="N,N", help="so many requests always under way (a closed loop)")
    load.add_argument(
        "--grammars",
        choices=["warm", "cold", "mixed"],
        default="warm",
        help="warm: each was sent once before; cold: each request's is made unique, where that is possible (default: warm)",
    )
    load.add_argument(
        "--pairs", choices=["on", "off"], default="on", help="send every request without a grammar too, in a load of its own (default: on)"
    )

    asked = live.add_argument_group("what is asked")
    asked.add_argument("--cases", type=positive, metavar="N", help="of each suite at most (default: all)")
    asked.add_argument("--limit", type=positive, default=256, metavar="N", help="output tokens at most (default: 256)")
    asked.add_argument("--temperature", type=not_negative, default=0.0, metavar="T", help="of sampling (default: 0)")
    asked.add_argument("--prompt", metavar="TEXT", help="with {grammar}, {kind} and {name} for the case's (default: shows the grammar)")
    asked.add_argument("--seed", type=whole, default=0, metavar="N", help="of arrivals, order and sampling (default: 0)")
    asked.add_argument(
        "--objectives", metavar="O", help="of goodput, milliseconds: 'ttft:500 tpot:50 e2e:2000' (default: ttft:500 tpot:50)"
    )

    deadlines = live.add_argument_group("deadlines, seconds")
    deadlines.add_argument("--connect-timeout", type=positive_number, default=5.0, metavar="S", help="of a connection (default: 5)")
    deadlines.add_argument("--first-timeout", type=positive_number, default=60.0, metavar="S", help="until the first text (default: 60)")
    deadlines.add_argument("--stall-timeout", type=positive_number, default=30.0, metavar="S", help="between messages (default: 30)")
    deadlines.add_argument("--timeout", type=positive_number, default=120.0, metavar="S", help="of a whole request (default: 120)")
