"""Every distribution is complete: metadata, license, tests, versions and requirements for development."""

from __future__ import annotations

import ast
import json
import re
import tomllib
from collections import Counter
from itertools import chain
from pathlib import Path

import pytest

import gossamer
from tests.conftest import installed_distribution, name_of

pytestmark = pytest.mark.unserialized

END_TO_END = {"gossamer": {"checks", "processes", "programs", "published_schedules", "schedules"}}
"""Folders of tests that no folder of the sources corresponds to."""
USED_HELPERS = {"gossamer-torch": "gossamer-cuda-mma-sp"}
"""The distribution whose helpers the tests of another one import, too, if it is installed."""


def test_a_distribution_has_a_readme_types_and_tests(distribution):
    readme = (distribution.folder / "README.md").read_text()
    assert readme.startswith(f"# {distribution.name}\n")
    assert "```python" in readme, "the README has no example"
    assert (distribution.source / "py.typed").exists()
    assert any(distribution.folder.glob("tests/**/test_*.py")), "no tests"


def test_tests_are_in_the_folders_of_what_they_test(distribution):
    tests = distribution.folder / "tests"
    folders = {path.parent.relative_to(tests).as_posix() for path in tests.rglob("test_*.py")}
    folders -= END_TO_END.get(distribution.name, set())
    assert [name for name in sorted(folders) if not (distribution.source / name).is_dir()] == []


def test_every_folder_of_sources_has_tests_or_the_folder_above_it_has(distribution):
    """A reader finds the tests of a module in the folder of its name, or next to that folder."""
    tests = distribution.folder / "tests"
    modules = (path for path in distribution.source.rglob("*.py") if path.name != "__init__.py")
    folders = {path.parent.relative_to(distribution.source) for path in modules} - {Path()}
    assert (
        sorted(
            folder.as_posix()
            for folder in folders
            if not any(
                any((tests / place).glob("test_*.py")) for place in (folder, *folder.parents[:-1])
            )
        )
        == []
    )


ONE_FILE_FOR_EACH = {
    "gossamer-formats": {"descriptions": "format"},
    "gossamer-schedule": {"primitives/loops": "primitive", "rules/library": "rule"},
}
"""Folders in which each file has one item of a kind, so that their number grows with the language."""
MAX_FILES = 16


def test_a_folder_has_few_files_unless_each_is_one_of_a_kind(distribution):
    """A reader finds the file in a short list, or by the name of the item."""
    modules = (path for path in distribution.source.rglob("*.py") if path.name != "__init__.py")
    counts = Counter(path.parent.relative_to(distribution.source).as_posix() for path in modules)
    full = {name for name, count in counts.items() if count > MAX_FILES}
    assert full == set(ONE_FILE_FOR_EACH.get(distribution.name, {}))


def test_the_metadata_of_a_distribution_is_complete(distribution):
    project = distribution.project
    assert project["description"]
    assert project["readme"] == "README.md"
    assert project["license"] == "Apache-2.0"
    assert project["license-files"] == ["LICENSE"]
    assert len(project["keywords"]) >= 3
    assert any(name_of(item) == "pytest" for item in project["optional-dependencies"]["test"])


def test_a_release_is_the_same_for_all(distribution, distributions):
    """All distributions have the same version, authors, Python versions and systems."""
    first = distributions[0].project
    for key in ("version", "authors", "requires-python", "classifiers"):
        assert distribution.project[key] == first[key], key


def test_distributions_of_a_release_require_each_other_at_its_version(distribution, distributions):
    project, ours = distribution.project, {distribution.name for distribution in distributions}
    listed = [*project["dependencies"], *chain(*project["optional-dependencies"].values())]
    pinned = [f"{name}=={project['version']}" for name in map(name_of, listed) if name in ours]
    assert [item for item in listed if name_of(item) in ours] == pinned


def test_the_release_has_one_version(distributions, root):
    (version,) = {distribution.project["version"] for distribution in distributions}
    assert gossamer.__version__ == version
    assert f"\nversion: {version}\n" in (root / "CITATION.cff").read_text()
    changes = re.findall(r"^## \[(.+?)\]", (root / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert next(change for change in changes if change != "Unreleased") == version


def test_its_oldest_python_is_the_first_that_it_claims(distribution):
    claimed = re.findall(r"Python :: 3\.(\d+)", " ".join(distribution.project["classifiers"]))
    first, *others = map(int, claimed)
    assert distribution.project["requires-python"] == f">=3.{first}"
    assert others == list(range(first + 1, first + 1 + len(others)))


def test_its_wheel_holds_the_license(distribution, root):
    """Python looks at what is installed: in the sessions of nox that is the wheel."""
    text = (root / "LICENSE").read_text()
    assert "Apache License" in text
    assert (distribution.folder / "LICENSE").read_text() == text
    installed = installed_distribution(distribution)
    assert installed.metadata["License-Expression"] == "Apache-2.0"
    assert installed.read_text("licenses/LICENSE") == text


def test_a_distribution_was_installed_from_this_repository(distribution):
    origin = installed_distribution(distribution).read_text("direct_url.json")
    assert origin is not None
    assert json.loads(origin)["url"].startswith("file:")


def test_one_command_installs_everything_for_development(distributions, root):
    """Editable, each distribution after those that it requires, and the tools that sessions install."""
    lines = (root / "requirements-dev.txt").read_text().splitlines()
    places = [line.removeprefix("-e ./") for line in lines if line.startswith("-e ")]
    by_place = {
        distribution.folder.relative_to(root).as_posix(): distribution
        for distribution in distributions
    }
    assert sorted(places) == sorted(by_place)
    ours, installed = {distribution.name for distribution in distributions}, set()
    for requirement in map(by_place.get, places):
        assert requirement.needs & ours <= installed, requirement.name
        installed.add(requirement.name)
    groups = tomllib.loads((root / "pyproject.toml").read_text())["dependency-groups"]
    tools = {item for name in ("test", "lint", "types") for item in groups[name]}
    listed = [line for line in lines if line and not line.startswith(("#", "-e "))]
    assert sorted(listed) == sorted(tools)
    command = "python -m pip install -r requirements-dev.txt"
    for name in ("README.md", "CONTRIBUTING.md"):
        assert command in (root / name).read_text(), name


def test_every_helper_of_tests_has_a_name_of_its_own(distributions):
    """Helpers are imported by their names, and the tests of all distributions may run in one process."""
    folders = [distribution.folder / "tests/helpers" for distribution in distributions]
    names = Counter(path.name for folder in folders for path in folder.glob("*.py"))
    assert [name for name, count in names.items() if count > 1] == []


def test_the_folders_of_helpers_are_where_tests_import_from(distributions, root):
    folders = (distribution.folder / "tests/helpers" for distribution in distributions)
    options = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    expected = [folder.relative_to(root).as_posix() for folder in folders if folder.is_dir()]
    assert options["pythonpath"][2:] == sorted(expected)


def test_tests_import_helpers_of_their_own_distribution_only(distributions, distribution):
    """So they run where no other distribution is; those of PyTorch use the driver of `cuda-mma-sp`."""
    others = {
        path.stem
        for other in distributions
        for path in (other.folder / "tests/helpers").glob("*.py")
        if other.name not in (distribution.name, USED_HELPERS.get(distribution.name))
    }
    imported = {
        name
        for path in (distribution.folder / "tests").rglob("*.py")
        for name in re.findall(r"^ *(?:from|import) (\w+)", path.read_text(), re.MULTILINE)
    }
    assert imported & others == set()


def test_tests_that_are_skipped_without_torch_run_in_its_session(distributions, root):
    skipping = [
        path.relative_to(root).as_posix()
        for distribution in distributions
        if "torch" not in distribution.needs
        for path in sorted((distribution.folder / "tests").rglob("test_*.py"))
        if {"find_spec", '"torch"'} <= set(re.findall(r'find_spec|"torch"', path.read_text()))
    ]
    sessions = (root / "tools/sessions/testing.py").read_text()
    (listed,) = re.findall(r"^NEEDING_TORCH = (\(.+?^\))", sessions, re.MULTILINE | re.DOTALL)
    assert sorted(ast.literal_eval(listed)) == sorted(skipping)
