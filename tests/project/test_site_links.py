"""Where the links of the documentation lead in its site: to a page of it, to the repository, or nowhere and
then it says the file's path."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from scripts import script_of

hook = script_of("site_links", "docs")
RUN = "releases-cpu-epyc-2vcpu-20261128"


def shown(text: str, page: str, repository: str = "") -> str:
    made: str = hook.on_page_markdown(
        text, SimpleNamespace(file=SimpleNamespace(src_uri=page)), SimpleNamespace(repo_url=repository), None
    )
    return made


@pytest.mark.parametrize(
    ("page", "link", "led"),
    [
        ("versions.md", f"../results/published/{RUN}/README.md", f"published/{RUN}/README.md"),
        ("versions.md", "reference.md#words", "reference.md#words"),
        (f"published/{RUN}/README.md", "../../../docs/versions.md#how", "../../versions.md#how"),
        (f"published/{RUN}/README.md", "releases.svg", "releases.svg"),
        (f"published/{RUN}/README.md", "https://example.org/a", "https://example.org/a"),
    ],
)
def test_a_link_leads_to_its_place_in_the_site(page: str, link: str, led: str) -> None:
    assert shown(f"See [it]({link}).", page) == f"See [it]({led})."


def test_what_the_site_does_not_have_is_in_the_repository() -> None:
    for page, link in (
        ("versions.md", "../benchmarks/releases.py"),
        (f"published/{RUN}/README.md", "../../../benchmarks/releases.py"),
    ):
        assert shown(f"[it]({link})", page, "https://example.org/it") == (
            "[it](https://example.org/it/blob/HEAD/benchmarks/releases.py)"
        )
        assert shown(f"[it]({link})", page) == "it (`benchmarks/releases.py`)"


def test_a_file_that_is_not_there_is_told(caplog: pytest.LogCaptureFixture) -> None:
    shown("[it](../benchmarks/no_such.py)", "versions.md")
    assert "versions.md links to benchmarks/no_such.py, which is not there" in caplog.text
