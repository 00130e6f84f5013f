"""How each page's commands are made small, what they end with, and which cannot be run here, and why."""

from __future__ import annotations

from places import ROOT

from docs_commands.runner import Recipe
from docs_commands.seeds import OWN_WHEEL

NOISY = (0, 4)
"""Few processes on a machine that does other things: whether anything is proven is not the page's matter."""

ONE_REQUEST = "--forks 1 --rounds 1 --batch 1 --requests 1 --prompt-tokens 4 --limit 8"
DOCTOR = "measure doctor --backends llguidance --vocabularies probe --forks 1"
RELEASES_OF_GROWTH = (
    "builds releases from the package index; tests/diagnose/test_growth_over_releases.py has made-up ones"
)
GROWTH = "growth --most 4 --forks 1"
KERNELS = "measure kernels --profile quick --backends unconstrained"
"""PyTorch's own kernels alone."""
ALL_FOUR = "xgrammar,llguidance,outlines-core,lm-format-enforcer"
SOME_CASES = "--grammarbench-backend=llguidance --grammarbench-suite=regex -k class"
TWO_RELEASES = "choices.jsonl --backends toy-choice==1.0,toy-choice==1.1 --vocabularies bytes --forks 2"
EXPERIMENT = (
    "every mechanism in three forks: minutes, and no option makes it less; "
    "tests/serve/test_decode_record.py looks at its plan"
)

INSTALLS = "installs from the package index; that the extras exist is checked by tests/project/test_docs.py"
WHOLE_SUITE = "a whole environment of tox, minutes long"

BISECTED = 'bisect toy-choice 1.1..2.0 choices.jsonl --case "two choices" --vocabularies bytes'
SLOWER = 'bisect toy-choice 1.1..1.2 choices.jsonl --case "tool call" --slower compile --vocabularies bytes'

SPEED = f"python one_fork.py {ROOT / 'benchmarks' / 'test_speed.py'}"

README = Recipe(
    seeds={"my_schemas": "my_schemas", "path/to/tokenizer": "tokenizer"},
    smaller={"--engine vllm": "--backends outlines-core,llguidance"},
    says={"advise my_schemas/": "Proof of each claim"},
    not_run={"pip install": INSTALLS},
    least=1,
)

ADVISE = Recipe(
    seeds={"my_schemas": "my_schemas", "tools.json": "tools.json", "path/to/tokenizer": "tokenizer"},
    smaller={
        "my_schemas/ --backends xgrammar,llguidance": "my_schemas/ --tokenizer probe --backends llguidance",
        "tools.json": "tools.json --backends llguidance",
        "--engine vllm": "--tokenizer probe --backends llguidance",
        "--require works": "--tokenizer probe --require works",
    },
    # llguidance refuses `the other order`.
    codes={"--require works": (1,)},
    says={
        "--out advice": "Proof of each claim",
        "advise tools.json": "works on",
        "repro advice": "fault.py",
    },
    least=5,
)

COMMANDS = Recipe(
    seeds={
        "my_schemas": "my_schemas",
        "choices.jsonl": "choices.jsonl",
        "path/to/tokenizer": "tokenizer",
        "path/to/model": "model",
        "results/baseline/default.json": "baseline.json",
        "dist": "dist",
        "head": "my_run",
        "base": "my_run",
    },
    smaller={
        "--engine vllm": "--backends outlines-core,llguidance",
        "CASE --backends xgrammar": "shelf --backends outlines-core",
        "my_schemas/ --backends xgrammar,llguidance": "my_schemas/ --backends outlines-core,llguidance",
        "--out my_run": "--effort 1 --out my_run",
        "--take-over my_run": "--effort 1 --take-over my_run",
        "--decode --out d": "--decode --effort 0 --vocabularies probe --out d",
        "adjudicate my_run": "adjudicate my_run --effort 1 --tries 1",
        "run json_schema --backends xgrammar,llguidance": "run my_schemas --vocabularies probe --backends "
        "llguidance",
        "run --backends llguidance --vocabularies probe": "run utf8 --backends llguidance --vocabularies "
        "probe",
        "run keywords --profile full": "run keywords --backends llguidance --profile quick",
        "grammarbench measure doctor": f"grammarbench {DOCTOR}",
        "measure --backends llguidance,xgrammar,outlines-core": "measure my_schemas --vocabularies probe "
        "--forks 1 --backends llguidance",
        "my_schemas/ --backends xgrammar==0.2.7,xgrammar==0.2.8": TWO_RELEASES,
        "growth tools nesting --backends llguidance,xgrammar": f"{GROWTH} tools --backends unconstrained",
        "grammarbench measure kernels": f"grammarbench {KERNELS}",
        "decode --backends llguidance,xgrammar": f"decode enums {ONE_REQUEST} --vocabularies probe "
        "--backends llguidance",
        "sql enums --backends xgrammar,llguidance --model 8b --device cuda --batch 1,32": (
            f"sql enums --backends llguidance {ONE_REQUEST} --vocabularies probe --model tiny --device cpu "
            "--batch 1,2 --requests 2"
        ),
        "--backends xgrammar --model path/to/model": f"--backends llguidance {ONE_REQUEST} --strategies "
        "stepwise --model path/to/model",
        "regex ebnf --backends xgrammar==0.2.7,xgrammar==./dist/xgrammar-0.2.9-cp311-cp311-linux_x86_64.whl": (  # noqa: E501
            f"choices.jsonl --backends toy-choice==1.0,toy-choice==./dist/{OWN_WHEEL}"
        ),
        'bisect xgrammar 0.1.34..0.2.8 --case "pattern space"': BISECTED,
        "--grammarbench-backend=xgrammar --grammarbench-suite=regex": SOME_CASES,
    },
    codes={
        "grammarbench measure": NOISY,
        # The backend fails some cases of the suite: that is what the tests are to show.
        "pytest --grammarbench-backend": (1,),
    },
    says={
        "report my_run": r"written: \S*report\.html",
        "repro my_run CASE --backends xgrammar": "over_constrained",
        "--spellings --out sp": "stored in sp",
        "table kw keywords": "keyword",
        "--expect results/baseline/default.json": "as recorded",
        "bisect xgrammar": r"toy-choice==2\.0 is the first version",
        "-m regex": r"\d+ failed, \d+ passed.* deselected",
        "compare versions --gate": "0 came out differently",
    },
    not_run={
        "--profile mechanisms": EXPERIMENT,
    },
    least=28,
)

INSTALL = Recipe(
    says={"list backends": r"llguidance +llguidance \d"},
    not_run={"pip install": INSTALLS, "tox run": WHOLE_SUITE},
    least=1,
)

INPUTS = Recipe(
    seeds={"my_schemas": "my_schemas", "choices.jsonl": "choices.jsonl", "dist": "dist"},
    smaller={
        "xgrammar,llguidance --vocabularies llama3,qwen": "llguidance --effort 0 --vocabularies bytes",
        "xgrammar:whitespace=compact:open_objects=false,outlines-core:mask=bool": "outlines-core:mask=bool "
        "--effort 0",
        "regex ebnf --backends xgrammar==0.2.7,xgrammar==./dist/xgrammar-0.2.9-cp311-cp311-linux_x86_64.whl": (  # noqa: E501
            f"choices.jsonl --backends toy-choice==1.0,toy-choice==./dist/{OWN_WHEEL}"
        ),
    },
    not_run={
        "grammarbench fetch vocabularies": "downloads; tests/backend/test_fetched_vocabularies.py does it "
        "from a folder",
        "grammarbench fetch": "clones from the network; tests/cases/test_corpora.py clones from a folder",
    },
    least=2,
)

BACKEND_MAINTAINER = Recipe(
    seeds={"my_schemas": "my_schemas", "choices.jsonl": "choices.jsonl"},
    smaller={
        "run regex json_schema --backends llguidance --vocabularies probe --profile full --effort 2": (
            "run my_schemas --backends llguidance --vocabularies probe --effort 1"
        ),
        "today CASE": "today shelf",
        "--out disputed": "--effort 1 --out disputed",
        "adjudicate disputed": "adjudicate disputed --effort 1 --tries 1",
        'bisect xgrammar 0.1.34..0.2.8 --case "pattern space"': BISECTED,
        'bisect xgrammar 0.1.34..0.2.8 speed --case "tool call" --slower compile --vocabularies tekken': SLOWER,  # noqa: E501
        "run utf8 --backends llguidance --record": "run choices.jsonl --backends llguidance --record",
        "run utf8 --backends llguidance --expect": "run choices.jsonl --backends llguidance --expect",
    },
    says={
        "check llguidance": "keeps the contract",
        "--script fault.py": "script: fault.py",
        "--expect expected.json": "as recorded",
        '--case "pattern space"': r"toy-choice==2\.0 is the first version",
        "--slower": r"toy-choice==1\.2",
    },
    least=11,
)

ENGINE_MAINTAINER = Recipe(
    seeds={"my_schemas": "my_schemas", "choices.jsonl": "choices.jsonl"},
    smaller={
        "run regex ebnf --backends vllm": "run choice_and_tags --backends vllm",
        "run regex ebnf --backends xgrammar==0.2.7,xgrammar==0.2.8": (
            "run choices.jsonl --backends toy-choice==1.0,toy-choice==1.1"
        ),
        "my_schemas/ --backends xgrammar==0.2.7,xgrammar==0.2.8": TWO_RELEASES,
        "check lm-format-enforcer --threads": "check lm-format-enforcer --threads --seconds 1",
        "decode --backends llguidance,xgrammar": f"decode enums {ONE_REQUEST} --vocabularies probe "
        "--backends llguidance",
        "grammarbench measure kernels": f"grammarbench {KERNELS}",
        "8000 my_schemas/ --rate 2,8": "8000 choices.jsonl --requests 8 --rate 200",
    },
    codes={"measure my_schemas": NOISY, "check vllm": (0, 1), "check lm-format-enforcer": (0, 1)},
    says={
        "check lm-format-enforcer": "on 8 threads",
        "compare two --gate": "0 came out differently",
        "report --history": "index.html",
    },
    needs={"vllm": "vllm", "table wrapped": "vllm", "grammarbench live": "httpx2"},
    not_run={"--profile mechanisms": EXPERIMENT},
    servers=("http://127.0.0.1:8000",),
    least=9,
)

PYTEST_BENCHMARK = Recipe(
    seeds={"one_fork.py": "one_fork.py"},
    smaller={
        "pytest benchmarks/test_speed.py --benchmark-json": f"{SPEED} --backends llguidance --vocabularies "
        "probe --benchmark-json",
        "pytest benchmarks/test_speed.py --backends xgrammar,llguidance": f"{SPEED} --backends llguidance "
        "--vocabularies probe",
        "pytest benchmarks/test_speed.py --measurement": f"{SPEED} --measurement",
        "median:10%": "median:100000%",
    },
    least=3,
)

TUTORIAL = Recipe(
    seeds={"choices.jsonl": "choices.jsonl"},
    smaller={
        "advise my_schemas --backends llguidance,xgrammar": "advise my_schemas --tokenizer probe --backends "
        "llguidance",
        "tekken": "probe",
        "--out my_run": "--effort 0 --out my_run",
        "--out my_tokenizers": "--effort 0 --out my_tokenizers",
        "my_schemas my_cases.jsonl --backends llguidance,xgrammar": "my_cases.jsonl --backends llguidance "
        "--vocabularies probe --forks 1",
        "my_schemas my_cases.jsonl --backends xgrammar==0.2.7,xgrammar==0.2.8": TWO_RELEASES,
        "bisect xgrammar 0.2.0..0.2.9 my_schemas --case order": BISECTED,
        "--model tiny": f"{ONE_REQUEST} --strategies stepwise --model tiny",
        "--backends llguidance,xgrammar --model 1b --device cuda --strategies stepwise,jump_forward --batch "
        "1,8,32": (
            f"--backends llguidance {ONE_REQUEST} --model tiny --vocabularies probe --device cpu "
            "--strategies stepwise,jump_forward"
        ),
        "measure kernels --device cuda": f"{KERNELS} --device cpu",
        "adjudicate my_run": "adjudicate my_run --effort 1 --tries 1",
    },
    codes={
        "grammarbench measure": NOISY,
        # Each backend refuses `the other order` (section 3).
        "pytest --grammarbench-backend": (1,),
    },
    says={
        "grammarbench list backends": r"llguidance +llguidance \d",
        "--vocabularies tekken --out my_run": r"5 of 6|83\.3|stored in my_run",
        "repro my_run shelf --backends llguidance --shrink": "script: fault.py",
        "report my_run": r"written: (my_run/report|exported)/report\.html",
        "compare my_run --record expected.json": "recorded 12 outcomes",
        "pytest --grammarbench-backend": "1 failed, 5 passed",
    },
    not_run={
        "pip install": INSTALLS,
        "hf:Qwen/Qwen2.5-0.5B": "a tokenizer of the hub: network",
        "tiktoken:o200k_base": "a file of ranks from the network",
        "--model Qwen/Qwen2.5-0.5B": "a model of the hub: network, and a GPU",
    },
    least=27,
)

RECIPES: dict[str, Recipe] = {
    "README.md": README,
    "docs/tutorial.md": TUTORIAL,
    "docs/advise.md": ADVISE,
    "docs/install.md": INSTALL,
    "docs/inputs.md": INPUTS,
    "docs/commands.md": COMMANDS,
    "docs/pytest_benchmark.md": PYTEST_BENCHMARK,
    "docs/backend_maintainer.md": BACKEND_MAINTAINER,
    "docs/engine_maintainer.md": ENGINE_MAINTAINER,
    "docs/ci.md": Recipe(
        seeds={"RUN": "my_run", "BASE": "my_run", "results/baseline/default.json": "record.json"},
        smaller={
            "run --backends llguidance --out recorded": "run utf8 --effort 0 --backends llguidance --out "
            "recorded",
            "run regex utf8 --backends xgrammar --out recorded": "run utf8 --timeout 2 --backends llguidance "
            "--out recorded2",
            "run --backends xgrammar --out today": "run --backends llguidance --out today2",
            "report today": "report today2",
            "compare tests/grammarbench.json today": "compare tests/grammarbench.json today2",
        },
        says={
            "--format junit": r"junit\.xml\n.*summary\.md\n$",
            "--split": r"written: \S*report\.html",
            "--expect tests/grammarbench.json --out today": "as recorded",
        },
        not_run={
            "pip install": INSTALLS,
            "llguidance==": "installs a release, or a wheel; tests/cli/test_gates.py gates two releases of a "
            "toy",
        },
        least=8,
    ),
    "docs/corpora.md": Recipe(
        seeds={
            f"corpora/json-schema-test-suite/tests/{draft}": "test_suite"
            for draft in ("draft2020-12", "draft2019-09", "draft7", "draft6", "draft4")
        },
        smaller={
            "benchmarks/reference.py --out reference": (
                f"{ROOT / 'benchmarks' / 'reference.py'} --out reference --backends llguidance "
                "--vocabularies probe --only jsts --sample 2"
            ),
            "benchmarks/reference.py --verify": f"{ROOT / 'benchmarks' / 'reference.py'} --verify",
        },
        says={
            "--estimate": "in all about",
            "--again": "0 cases met a deadline",
            "--page": r"written: reference/published",
        },
        not_run={
            "grammarbench fetch": "clones from the network; tests/cases/test_corpora.py clones from a folder"
        },
        least=4,
    ),
    "docs/decoding.md": Recipe(
        seeds={"my_schemas": "my_schemas", "path/to/model": "model"},
        smaller={
            "decode --backends llguidance,xgrammar": f"decode enums {ONE_REQUEST} --vocabularies probe "
            "--backends llguidance,xgrammar",
            "--backends xgrammar --model 1b": f"--backends llguidance {ONE_REQUEST} --vocabularies probe "
            "--model tiny",
            "--backends llguidance,xgrammar --model path/to/model": f"--backends llguidance {ONE_REQUEST} "
            "--model path/to/model",
            "--backends xgrammar --rate 4": f"--backends llguidance {ONE_REQUEST} --vocabularies probe "
            "--strategies stepwise --rate 4",
            "--backends llguidance,xgrammar --decode": "--backends llguidance --vocabularies probe --effort "
            "0 --decode",
        },
        says={"--model path/to/model": "tax/id"},
        not_run={"--profile mechanisms": EXPERIMENT},
        least=4,
    ),
    "docs/engines.md": Recipe(
        smaller={
            "run regex ebnf": "run choice_and_tags",
            "run choice_and_tags ebnf utf8 regex json_schema": "run choice_and_tags",
            "benchmarks/wrappers.py": f"{ROOT / 'benchmarks' / 'wrappers.py'}",
            "benchmarks/vllm_auto.py": f"{ROOT / 'benchmarks' / 'vllm_auto.py'}",
        },
        # What the wrappers break is what the page tells.
        codes={"check vllm": (0, 1), "check sglang": (0, 1)},
        needs={
            "vllm": "vllm",
            "table wrapped": "vllm",
            "table crossed": "vllm",
            "check sglang": "sglang",
            "benchmarks/wrappers.py": "vllm",
            "benchmarks/vllm_auto.py": "vllm",
        },
        not_run={"pip install": INSTALLS},
        least=6,
    ),
    "docs/extending.md": Recipe(
        seeds={"corpora/json-schema-test-suite/tests/draft2020-12": "test_suite"},
        # The second adapter is wrong on purpose, and the page says so.
        codes={"upper=true --vocabularies bytes": (1,)},
        says={
            "check my_backend:Choices": "keeps the contract",
            "upper=true --vocabularies bytes": "is refused",
        },
        not_run={
            "grammarbench fetch": "clones from the network; tests/cases/test_corpora.py and "
            "tests/cli/test_json_output.py clone from a folder"
        },
        environ={"PYTHONPATH": "FOLDER"},
        least=5,
    ),
    "docs/faults.md": Recipe(
        seeds={"my_schemas": "my_schemas"},
        smaller={
            f"run --backends {ALL_FOUR}": "run my_schemas --effort 1 --backends xgrammar,llguidance",
            "--vocabularies tekken,mistral-v3,probe": "--vocabularies probe",
            f"run json_schema --backends {ALL_FOUR}:shared_enforcer=true": "run my_schemas --backends "
            "llguidance",
        },
        least=4,
    ),
    "docs/python.md": Recipe(
        seeds={"results/published/corpora-cpu-epyc-2vcpu-20261122/maskbench": "published"},
        says={"--format latex,pdf": "paper/table-outcomes.tex"},
    ),
    "docs/history.md": Recipe(
        seeds={"results/runs/last-night": "measured"},
        codes={"past/ --gate": (4,)},  # one run is no baseline
        says={"--add": "added: past"},
        least=3,
    ),
    "docs/json_schema_masks.md": Recipe(
        seeds={"maskbench": "my_schemas", "maskbench_tenth": "my_schemas"},
        smaller={
            "--effort 2": "--effort 1",
            "run --backends xgrammar,llguidance,outlines-core,lm-format-enforcer,llama-cpp": (
                "run choice_and_tags --backends llguidance"
            ),
            "maskbench/ --backends xgrammar,llguidance,outlines-core,lm-format-enforcer,llama-cpp": (
                "maskbench/ --backends llguidance"
            ),
        },
        says={"table ours masks": "layout_places"},
        least=3,
    ),
    "docs/endless.md": Recipe(
        seeds={"my_schemas": "my_schemas"},
        smaller={
            "advise my_schemas/ --backends xgrammar,llguidance": "advise my_schemas/ --backends llguidance "
            "--tokenizer bytes",
            "xgrammar,xgrammar:max_whitespace=20,llguidance --vocabularies": "llguidance --vocabularies",
            "run json_schema choice_and_tags --backends xgrammar,xgrammar:max_whitespace=20,llguidance,": (
                "run my_schemas --backends llguidance,"
            ),
            "run json_schema choice_and_tags --backends xgrammar,llguidance --vocabularies bytes --profile": (
                "run my_schemas --backends llguidance --vocabularies bytes --profile"
            ),
            "run json_schema --spellings --backends xgrammar,xgrammar:max_whitespace=20,llguidance,": (
                "run my_schemas --spellings --backends llguidance,"
            ),
            "benchmarks/endless.py": f"{ROOT / 'benchmarks' / 'endless.py'}",
        },
        says={
            "--out advice": "go on until max_tokens",
            "ends endless": "white_space",
            "ends budgets": "least_tokens",
            "--endless runs": "llguidance:max_whitespace=20",
            "--endless whole": "white space",
        },
        least=8,
    ),
    "docs/gpu.md": Recipe(
        smaller={"benchmarks/layers.py": f"{ROOT / 'benchmarks' / 'layers.py'} --device cpu"},
        needs={"benchmarks/layers.py": "torch"},
    ),
    "docs/growth.md": Recipe(
        smaller={
            "growth --backends xgrammar,llguidance,outlines-core,lm-format-enforcer,llama-cpp": f"{GROWTH} "
            "enum --backends unconstrained",
            "growth --backends xgrammar,llguidance": f"{GROWTH} enum --backends unconstrained",
            "growth tools enum --backends xgrammar --vocabularies tekken": f"{GROWTH} enum --backends "
            "unconstrained --vocabularies bytes",
            "growth schemas --backends xgrammar,xgrammar:cache=true": f"{GROWTH} schemas --schemas 50 "
            "--backends unconstrained",
            "tools tags properties optional nesting enum --backends xgrammar,llguidance --vocabularies "
            "tekken": ("excluded --most 1 --backends unconstrained"),
        },
        not_run={"grammarbench bisect": RELEASES_OF_GROWTH},
        says={"--show": "cold compile", "list axes": "nesting"},
        least=6,
    ),
    "docs/kernels.md": Recipe(
        smaller={
            "measure kernels --out DIR": f"{KERNELS} --out first",
            "measure kernels --device cuda --out DIR": f"{KERNELS} --device cpu --out second",
            # The only one with a kernel that compiles itself, which takes most of the time.
            "--profile quick --backends xgrammar,llguidance": "--profile quick --backends llguidance",
        },
        says={"--show": r"\| plain/masked_fill \|"},
        least=4,
    ),
    "docs/keywords.md": Recipe(
        smaller={ALL_FOUR: "llguidance,lm-format-enforcer", "--profile full": "--profile quick"}, least=1
    ),
    "docs/known_bugs.md": Recipe(
        smaller={
            ALL_FOUR: "llguidance,outlines-core",
            "--vocabularies probe,tekken": "--vocabularies probe",
            "--profile full": "--profile quick",
            "--timeout 10": "--timeout 3",
        },
        least=1,
    ),
    "docs/structural_tags.md": Recipe(
        smaller={
            "run choice_and_tags --profile full --effort all --backends xgrammar,llguidance": (
                'run choice_and_tags --profile full --case "a long end" --effort 1 --backends llguidance'
            ),
            "run choice_and_tags --profile full --effort 6 --backends xgrammar,llguidance": (
                'run choice_and_tags --profile full --case "a long end" --effort 1 --backends llguidance'
            ),
        },
    ),
    "docs/lark.md": Recipe(
        smaller={
            "suites/lark.jsonl --backends xgrammar,llguidance": 'lark --case "a count of zero" --backends '
            "llguidance",
            "--effort 40": "--effort 1",
            "benchmarks/larks.py 400": f"{ROOT / 'benchmarks' / 'larks.py'} 3",
            "random_larks.jsonl --backends xgrammar,llguidance": "random_larks.jsonl --backends llguidance",
            "suites/lark.jsonl --backends vllm": 'lark --case "a count of zero" --backends vllm',
        },
        says={"table larks masks": "layout_places"},
        needs={"vllm": "vllm"},
        least=5,
    ),
    "docs/tools.md": Recipe(
        smaller={
            "suites/tools.jsonl --backends xgrammar,llguidance --vocabularies tekken": "tools --backends "
            "llguidance --vocabularies probe",
            "table results/published": f"table {ROOT / 'results' / 'published'}",
            "benchmarks/tool_tags.py": f"{ROOT / 'benchmarks' / 'tool_tags.py'}",
        },
        says={
            "table called tools": "declines all",
            "/called tools": "15/15 right",
            "tool_tags": "13 of 13 right",
        },
        needs={"--vllm": "vllm"},
        least=6,
    ),
    "docs/live.md": Recipe(
        seeds={"choices.jsonl": "choices.jsonl"},
        smaller={
            "8000 my_schemas/": "8000 choices.jsonl --requests 8",
            "--rate 2,8,32 --requests 500": "--rate 200",
            "json_schema ebnf --concurrency 1,16": "choices.jsonl --requests 8 --concurrency 1,2",
            "runs/old": "runs/new",
        },
        says={"--requests 500 --gate": "kept", "grammarbench report": r"report\.html"},
        not_run={"pip install": INSTALLS},
        needs={"grammarbench live": "httpx2", "runs/new": "httpx2"},
        servers=("http://127.0.0.1:8000", "http://127.0.0.1:8080"),
        least=6,
    ),
    "docs/vocabularies.md": Recipe(
        smaller={
            "known_bugs --backends reference:formats=assert --vocabularies llama3,qwen,o200k,gemma3 "
            "--profile quick --seed 1 --effort 1": "known_bugs --backends reference:formats=assert "
            "--vocabularies bytes --profile quick --effort 0",
            "xgrammar:loader=bytes,llguidance:loader=bytes,outlines-core:loader=bytes --vocabularies "
            "llama2,llama3,qwen,o200k,gemma3": "llguidance:loader=bytes --vocabularies bytes",
            "xgrammar:loader=bytes,llguidance:loader=bytes --vocabularies "
            "llama2,phi3,gpt2,cl100k,llama3,deepseek,deepseek-v3,qwen,o200k,llama4,command-r,gemma4,gemma3": (
                "llguidance:loader=bytes --vocabularies bytes,probe"
            ),
        },
        not_run={
            "grammarbench fetch vocabularies": "downloads; tests/backend/test_fetched_vocabularies.py does "
            "it from a folder"
        },
        least=2,
    ),
    "docs/llama_cpp.md": Recipe(
        smaller={
            "llama-cpp,xgrammar,llguidance,outlines-core,lm-format-enforcer --vocabularies mistral-v3": "llama-cpp --vocabularies "  # noqa: E501
            "probe",
            "--profile full --effort 1": "--profile quick --effort 0",
        },
        codes={"grammarbench check llama-cpp": (1,)},  # the page says why
        needs={"grammarbench": "llama_cpp"},
        least=3,
    ),
    "docs/measuring.md": Recipe(
        seeds={"my_schemas": "my_schemas", "choices.jsonl": "choices.jsonl"},
        smaller={
            "grammarbench measure doctor": f"grammarbench {DOCTOR}",
            "measure --backends llguidance,xgrammar,": "measure my_schemas --vocabularies probe --forks 1 "
            "--backends llguidance,",
            "my_schemas/ --backends xgrammar==0.2.7,xgrammar==0.2.8 --profile default": TWO_RELEASES,
            'bisect xgrammar 0.1.34..0.2.8 speed --case "tool call" --slower compile --vocabularies tekken': SLOWER,  # noqa: E501
        },
        codes={"grammarbench measure": NOISY},
        says={"bisect": r"toy-choice==1\.2", "table versions": "ttfm"},
        least=8,
    ),
    "docs/methods.md": Recipe(
        seeds={"my_schemas": "my_schemas"},
        smaller={
            f"run --backends {ALL_FOUR}": "run my_schemas --vocabularies probe --effort 1 --backends "
            "llguidance,outlines-core",
            "measure --backends llguidance,xgrammar,outlines-core,lm-format-enforcer --profile default": (
                "measure my_schemas --vocabularies probe --forks 1 --backends llguidance,outlines-core"
            ),
        },
        codes={"grammarbench measure": NOISY},
        least=3,
    ),
    "docs/more_backends.md": Recipe(
        smaller={"run regex json_schema choice_and_tags utf8": "run utf8", "--effort 2": "--effort 0"},
        # What it breaks, the page tells.
        codes={"check formatron": (0, 1)},
        needs={"grammarbench": "formatron"},
        not_run={"pip install": INSTALLS},
        least=2,
    ),
    "docs/pytest.md": Recipe(
        seeds={"tests": "own_test"},
        smaller={
            "--grammarbench-backend=xgrammar --grammarbench-suite=regex --grammarbench-suite=utf8": SOME_CASES,  # noqa: E501
            "run regex utf8 --backends xgrammar": "run regex --timeout 2 --backends llguidance",
            "--grammarbench-backend=xgrammar --grammarbench-expect": "--grammarbench-backend=llguidance "
            "-k class --grammarbench-expect",
        },
        # The backend fails some of these cases; that is what is recorded then.
        codes={"--grammarbench-suite=utf8": (1,), "--grammarbench-expect=tests/grammarbench.json": (0,)},
        says={
            "--grammarbench-suite=utf8": r"\d+ failed, \d+ passed",
            "--grammarbench-expect=tests/grammarbench.json": r"passed.*xfailed",
        },
        not_run={"pip install": INSTALLS},
        least=3,
    ),
    "docs/ray.md": Recipe(
        seeds={"my_schemas": "my_schemas"},
        smaller={
            "my_schemas/ --backends xgrammar,llguidance --effort 0 --decode": (
                "my_schemas/ --backends llguidance --vocabularies probe --effort 0 --decode"
            ),
            "run --backends xgrammar,llguidance": "run choice_and_tags --vocabularies probe --effort 0 "
            "--backends llguidance",
        },
        codes={"merge part": (3,)},
        says={
            "merge whole": r"rows of 3 runs",
            "merge part": "missing: shard 2/3",
            "--resume": "resuming part",
        },
        needs={"--executor ray --jobs": "ray", "table decoded passes": "ray"},
        not_run={
            "pip install": INSTALLS,
            "--executor ray:auto": "a cluster; tests/running/test_ray.py has one",
        },
        least=6,
    ),
    "docs/versions.md": Recipe(
        seeds={"choices.jsonl": "choices.jsonl"},
        smaller={
            "$S": "choices.jsonl",
            "xgrammar==0.1.34,xgrammar==0.2.7,xgrammar==0.2.8": "toy-choice==1.0,toy-choice==1.1,toy-choice==2.0",  # noqa: E501
            "choice_and_tags keywords tag_formats tools lark --backends": "choices.jsonl --backends",
            "xgrammar==0.2.8,xgrammar==0.2.9 --vocabularies tekken": "toy-choice==1.0,toy-choice==2.0 --vocabularies bytes",  # noqa: E501
            "xgrammar==0.2.8,xgrammar==0.2.9": "toy-choice==1.0,toy-choice==1.1",
            "llguidance==1.6.1,llguidance==1.9.1": "toy-choice==1.0,toy-choice==1.1",
            "outlines-core==0.2.11,outlines-core==0.2.14": "toy-choice==1.0,toy-choice==2.0",
        },
        not_run={
            "benchmarks/releases.py": "installs 43 releases from the package index; "
            "tests/project/test_releases.py walks arms of ours"
        },
        least=3,
    ),
}
