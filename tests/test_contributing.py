"""Paths and commands of README.md and CONTRIBUTING.md: the paths exist, and the checks run the commands."""

from __future__ import annotations

import re

import pytest

pytestmark = pytest.mark.unserialized

PATH = re.compile(
    r"`((?:packages|plugins|tests|tools|docs|benchmarks|\.ci)(?:/[\w.-]+)*|[\w-]+\.(?:toml|txt|md|py))`"
)


@pytest.mark.parametrize("name", ["CONTRIBUTING.md", ".github/PULL_REQUEST_TEMPLATE.md"])
def test_paths_that_contributors_are_sent_to_exist(name, root):
    paths = set(PATH.findall((root / name).read_text()))
    assert len(paths) > (50 if name == "CONTRIBUTING.md" else 1)
    assert [path for path in sorted(paths) if not (root / path).exists()] == []


def test_folders_that_contributors_are_sent_to_are_in_a_folder_of_their_section(root):
    """A word that ends in a slash is a folder of one that the same section names from the root."""
    sections = re.split(r"\n##+ ", (root / "CONTRIBUTING.md").read_text())
    named = [(section, name) for section in sections for name in re.findall(r"`(\w+)/`", section)]
    assert named
    missing = [
        name
        for section, name in named
        if not any((root / path / name).is_dir() for path in PATH.findall(section))
    ]
    assert missing == []


@pytest.mark.parametrize("session", ["demo", "tests"])
def test_the_readme_opens_with_a_command_that_runs(session, root):
    opening = (root / "README.md").read_text().partition("```sh\n")[2].partition("```")[0]
    command = (
        rf"python3 -m venv \.venv && \.venv/bin/pip install nox && \.venv/bin/nox -s {session}\b"
    )
    assert len(re.findall(command, opening)) == 1


def test_every_change_is_checked_with_the_readme_commands(root):
    """`.ci/run` runs lint, types, the site and the README's tests; some of these are named, too, so that
    they come first."""
    checks = (root / ".ci" / "run").read_text()
    (listed,) = re.findall(r"^exec \.venv/bin/nox .* -s (.+)$", checks, re.MULTILINE)
    sessions = {name.strip('"') for name in listed.split()}
    assert {name for name in sessions if "(" not in name} == {"lint", "types", "docs", "tests"}
