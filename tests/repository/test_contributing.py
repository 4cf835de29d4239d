"""Paths and commands of README.md, CONTRIBUTING.md and the recipes of docs/extending: the paths exist, and
the checks run the commands."""

from __future__ import annotations

import re

import pytest

from tests.recipes.recipe_pages import FOLDER, recipe_pages, with_whole_paths

pytestmark = pytest.mark.unserialized

PATH = re.compile(
    r"`((?:packages|plugins|tests|tools|docs|benchmarks|\.ci)(?:/[\w.-]+)*|[\w-]+\.(?:toml|txt|md|py))`"
)

PLACES = (
    "CONTRIBUTING.md",
    ".github/PULL_REQUEST_TEMPLATE.md",
    "docs/generated-files.md",
    f"{FOLDER}/*.md",
)
"""The documents for contributors."""


@pytest.fixture
def texts(root):
    """The texts of the documents for contributors, by their paths."""
    paths = [path for place in PLACES for path in root.glob(place)]
    return {path.relative_to(root).as_posix(): with_whole_paths(path.read_text()) for path in paths}


def test_paths_that_contributors_are_sent_to_exist(texts, root):
    paths = {name: {*PATH.findall(text)} for name, text in texts.items()}
    assert len(set.union(*paths.values())) > 200
    assert [name for name, listed in paths.items() if not listed] == []
    missing = [path for listed in paths.values() for path in listed if not (root / path).exists()]
    assert missing == []


def test_paths_of_a_table_are_resolved_through_its_prefix():
    text = (
        "Paths below are relative to `packages/ir`, with a leading `/` to the repository.\n\n"
        "| file |\n|---|\n| `tests/missing.py` of `README.md` |\n| `/tests/conftest.py` |\n\n`docs/ffi.md`\n"
    )
    assert PATH.findall(with_whole_paths(text)) == [
        "packages/ir",
        "packages/ir/tests/missing.py",
        "packages/ir/README.md",
        "tests/conftest.py",
        "docs/ffi.md",
    ]


def test_folders_that_contributors_are_sent_to_are_in_a_folder_of_their_section(texts, root):
    """A word that ends in a slash is a folder of one that the same section names from the root."""
    sections = [section for text in texts.values() for section in re.split(r"\n##+ ", text)]
    named = [(section, name) for section in sections for name in re.findall(r"`(\w+)/`", section)]
    assert named
    missing = [
        name
        for section, name in named
        if not any((root / path / name).is_dir() for path in PATH.findall(section))
    ]
    assert missing == []


def test_every_recipe_is_in_the_index(root):
    index = (root / FOLDER / "README.md").read_text()
    pages = {path.name for path in (root / FOLDER).glob("*.md")} - {"README.md"}
    assert {*re.findall(r"\]\(([\w-]+\.md)\)", index)} == pages
    assert all(
        title.startswith("Add a") for title in recipe_pages(root).keys() - {"Extending gossamer"}
    )


@pytest.mark.parametrize("session", ["demo", "tests"])
def test_the_readme_opens_with_a_command_that_runs(session, root):
    opening = (root / "README.md").read_text().partition("```sh\n")[2].partition("```")[0]
    command = (
        rf"python3 -m venv \.venv && \.venv/bin/pip install nox && \.venv/bin/nox -s {session}\b"
    )
    assert len(re.findall(command, opening)) == 1


def test_every_change_is_checked_with_the_readme_commands(root):
    """`.ci/run` runs lint, types, the site, tests in a Python of AArch64 and the README's tests; some of
    these are named, too, so that they come first."""
    checks = (root / ".ci" / "run").read_text().replace("\\\n", "")
    (listed,) = re.findall(r"^exec \.venv/bin/nox .* -s (.+)$", checks, re.MULTILINE)
    sessions = {name.strip('"') for name in listed.split()}
    assert {name for name in sessions if "(" not in name} == {
        "aarch64",
        "docs",
        "lint",
        "tests",
        "types",
    }
