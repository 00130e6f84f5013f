"""The commands of every page are run, in the order of the page."""

from __future__ import annotations

from pathlib import Path

import pages
import pytest
from docs_commands.recipes import RECIPES
from docs_commands.runner import Ran, Recipe, run_page
from docs_commands.seeds import Store
from places import ROOT

from harness.outcomes.summary import read_arms

WITH_COMMANDS = [
    str(each.relative_to(ROOT))
    for each in pages.PAGES
    if any(True for block in pages.blocks(each.read_text("utf-8")) for _ in pages.commands(block))
]
LONGEST_FIRST = sorted(WITH_COMMANDS, key=lambda each: (-len(RECIPES.get(each, Recipe()).smaller), each))


@pytest.mark.parametrize("page", LONGEST_FIRST)
def test_the_commands_of_the_page_run(page: str, store: Store, tmp_path: Path) -> None:
    recipe = RECIPES.get(page, Recipe())
    ran = run_page(pages.text_of(page), recipe, tmp_path, store)
    print(ran.bill())  # shown for a page that fails, and with -rP
    assert not ran.problems, "\n\n".join(ran.problems)
    assert len(ran.codes) + len(ran.skipped) >= recipe.least
    if page in AFTER:
        AFTER[page](ran)
    if ran.skipped and not ran.codes:
        pytest.skip(f"needs {', '.join(sorted(set(ran.skipped.values())))}")


def test_there_is_no_recipe_for_a_page_that_is_gone() -> None:
    assert set(RECIPES) <= set(WITH_COMMANDS)


def the_example_backend_is_right(ran: Ran) -> None:
    """Of docs/extending.md."""
    arms = read_arms(ran.folder / "answered")
    assert [(each.name, each.outcomes["pass"]) for each in arms] == [
        ("my_backend:Choices", 4),
        ("reference", 4),
    ]
    assert [name for each in arms for name, check in each.checks.items() if check.failed] == []
    assert arms[0].checks["the_mask_is_exact"].passed == 2


AFTER = {"docs/extending.md": the_example_backend_is_right}


@pytest.mark.parametrize(
    ("line", "recipe", "said"),
    [
        ("grammarbench table nowhere", Recipe(), "exit code 2, not (0,)"),
        (
            "grammarbench list suites",
            Recipe(says={"suites": "no such suite"}),
            "does not say 'no such suite'",
        ),
        ("tox run -e test", Recipe(), "neither run nor listed"),
        (
            "grammarbench list suites",
            Recipe(smaller={"--forks 8": ""}),
            "`--forks 8`, of which the recipe speaks (smaller)",
        ),
        ("python broken.py", Recipe(codes={"broken": (1,)}), "a traceback"),
    ],
)
def test_what_is_wrong_with_a_planted_command_is_told(
    line: str, recipe: Recipe, said: str, store: Store, tmp_path: Path
) -> None:
    (tmp_path / "broken.py").write_text("1 / 0\n", "utf-8")
    ran = run_page(f"# A page\n\nSome words:\n\n    {line}   # what it does\n", recipe, tmp_path, store)
    assert len(ran.problems) == 1 and said in ran.problems[0]


def test_what_is_listed_or_lacks_a_module_is_not_run(store: Store, tmp_path: Path) -> None:
    text = "# A page\n\nSome words:\n\n    grammarbench table nowhere\n    grammarbench table lost\n"
    recipe = Recipe(not_run={"nowhere": "there is nothing"}, needs={"lost": "no_such_module"})
    ran = run_page(text, recipe, tmp_path, store)
    assert (ran.problems, ran.codes, ran.skipped) == ([], {}, {"grammarbench table lost": "no_such_module"})
