"""A corpus is cloned at its pinned commit, from a repository that the test makes."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from harness.cases.corpora import CORPORA, Corpus, fetch_corpus
from harness.cases.suite import find_suite, read_cases
from harness.errors import BadInput


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=test", "-c", "user.email=test@localhost")
    return subprocess.run(
        ["git", "-C", str(folder), *identity, *arguments], check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.fixture
def pinned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with two commits; the first is the pinned one."""
    source = tmp_path / "source"
    (source / "data").mkdir(parents=True)
    git(source.parent, "init", "--quiet", str(source))
    git(source, "config", "uploadpack.allowAnySHA1InWant", "true")
    (source / "data" / "one.json").write_text('{"schema": {"const": 1}}')
    git(source, "add", ".")
    git(source, "commit", "--quiet", "-m", "first")
    commit = git(source, "rev-parse", "HEAD")
    (source / "data" / "one.json").write_text('{"schema": {"const": 2}}')
    git(source, "commit", "--quiet", "-am", "second")
    monkeypatch.setitem(CORPORA, "maskbench", Corpus(str(source), commit, "data"))
    return source


def test_the_pinned_commit_is_what_is_read(pinned: Path, tmp_path: Path) -> None:
    folder = fetch_corpus("maskbench", tmp_path / "corpora")
    (case,) = read_cases(find_suite(str(folder)))
    assert case.grammar.text == '{"const": 1}'
    assert fetch_corpus("maskbench", tmp_path / "corpora") == folder, "fetching again finds it there"


def test_a_repository_out_of_reach_is_one_clear_line(pinned: Path, tmp_path: Path) -> None:
    pinned.rename(tmp_path / "gone")
    with pytest.raises(
        BadInput, match=r"git fetch failed: fatal: .*source.*; is there a network\?"
    ) as caught:
        fetch_corpus("maskbench", tmp_path / "corpora")
    assert "\n" not in str(caught.value)
    assert list((tmp_path / "corpora").iterdir()) == [], "nothing half done is left"


def test_a_corpus_that_is_there_needs_no_network(pinned: Path, tmp_path: Path) -> None:
    folder = fetch_corpus("maskbench", tmp_path / "corpora")
    pinned.rename(tmp_path / "gone")
    assert fetch_corpus("maskbench", tmp_path / "corpora") == folder


@pytest.mark.parametrize("change", ["edited", "one more", "one less", "of another commit"])
def test_a_corpus_that_was_changed_does_not_pass_as_the_pinned_one(
    change: str, pinned: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = fetch_corpus("maskbench", tmp_path / "corpora")
    if change == "edited":
        (folder / "one.json").write_text('{"schema": {"const": 9}}')
    elif change == "one more":
        (folder / "two.json").write_text('{"schema": {"const": 1}}')
    elif change == "one less":
        (folder / "one.json").unlink()
    else:
        commit = git(pinned, "rev-parse", "HEAD")
        monkeypatch.setitem(CORPORA, "maskbench", Corpus(str(pinned), commit, "data"))
    with pytest.raises(BadInput, match=r"corpora/maskbench is not commit .*; move it away and fetch again"):
        fetch_corpus("maskbench", tmp_path / "corpora")


@pytest.mark.parametrize("setting", ["url.ext::sh -c 'touch RAN' #.insteadOf", "filter.x.smudge"])
def test_a_repository_that_is_already_there_runs_no_program(
    setting: str, pinned: Path, tmp_path: Path
) -> None:
    ran = tmp_path / "ran"
    folder = tmp_path / "corpora" / "maskbench"
    folder.mkdir(parents=True)
    git(folder, "init", "--quiet")
    git(folder, "config", "protocol.ext.allow", "always")
    git(folder, "config", setting.replace("RAN", str(ran)), str(pinned))
    git(folder, "config", "filter.x.smudge", f"sh -c 'touch {ran}; cat'")
    (folder / ".git" / "info" / "attributes").write_text("* filter=x\n")
    with pytest.raises(BadInput, match="move it away"):
        fetch_corpus("maskbench", tmp_path / "corpora")
    assert not ran.exists()


def test_a_corpus_is_fetched_from_within_a_hook_of_another_repository(
    pinned: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = git(pinned, "rev-parse", "HEAD")
    monkeypatch.setenv("GIT_DIR", str(pinned / ".git"))
    (case,) = read_cases(find_suite(str(fetch_corpus("maskbench", tmp_path / "corpora"))))
    assert case.grammar.text == '{"const": 1}'
    monkeypatch.delenv("GIT_DIR")
    assert git(pinned, "rev-parse", "HEAD") == head


def test_a_folder_that_cannot_be_written_is_one_clear_line() -> None:
    with pytest.raises(BadInput, match="cannot be written"):
        fetch_corpus("maskbench", Path("/proc/nowhere"))


def test_both_corpora_are_pinned_by_a_whole_commit() -> None:
    assert set(CORPORA) == {"maskbench", "json-schema-test-suite"}
    assert all(re.fullmatch("[0-9a-f]{40}", each.commit) for each in CORPORA.values())
