"""Every distribution is whole, declares what it imports, and keeps to its place in the house."""

from __future__ import annotations

import ast
import importlib.metadata
import json
import re
import sys
import tomllib
from collections import Counter

import pytest

MAY_NEED = {
    "gossamer-ir": set(),
    "gossamer-formats": {"gossamer-ir"},
    "gossamer-schedule": {"gossamer-ir"},
    "gossamer-lower": {"gossamer-ir"},
    "gossamer-backend": {"gossamer-ir"},
    "gossamer-llvm": {"gossamer-ir"},
    "gossamer-testkit": {"gossamer-ir", "gossamer-backend"},
    "gossamer-generic-cpu": {"gossamer-ir", "gossamer-backend", "gossamer-llvm"},
}


def name_of(requirement):
    return re.match(r"[A-Za-z0-9._-]+", requirement)[0].lower()


def needs(distribution):
    return {name_of(requirement) for requirement in distribution.project["dependencies"]}


def imported_packages(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module.partition(".")[0]


def test_it_is_whole(distribution):
    readme = (distribution.folder / "README.md").read_text()
    assert readme.startswith(f"# {distribution.name}\n")
    assert "```python" in readme, "the README has no example"
    assert (distribution.source / "py.typed").exists()
    assert list(distribution.folder.glob("tests/test_*.py")), "no tests"


def test_it_says_who_it_is(distribution):
    project = distribution.project
    assert project["version"] == "0.1.0"
    assert project["description"]
    assert project["requires-python"] == ">=3.11"
    assert project["readme"] == "README.md"
    assert any(name_of(item) == "pytest" for item in project["optional-dependencies"]["test"])


def test_it_needs_only_what_its_place_allows(distribution, distributions):
    ours = {found.name for found in distributions}
    allowed = MAY_NEED.get(distribution.name, ours - {distribution.name})
    assert needs(distribution) & ours <= allowed


def test_only_gossamer_may_need_everything(distributions):
    assert {found.name for found in distributions} - set(MAY_NEED) == {"gossamer"}


def owners_of(package):
    """The names of the distributions that may be declared to have the package."""
    if package.startswith("gossamer"):
        return {package.replace("_", "-")}
    owners = importlib.metadata.packages_distributions().get(package, [package])
    return {name.lower().replace("_", "-") for name in owners}


def imports_of(distribution):
    """Packages from outside, and where each is imported."""
    found = {}
    for path in distribution.source.rglob("*.py"):
        for package in imported_packages(path):
            if package not in sys.stdlib_module_names and package != distribution.package:
                found[package] = path.relative_to(distribution.folder)
    return found


def test_it_declares_what_it_imports(distribution):
    imports = imports_of(distribution)
    undeclared = {
        p: str(path) for p, path in imports.items() if not owners_of(p) & needs(distribution)
    }
    assert undeclared == {}


def test_it_imports_what_it_declares(distribution):
    used = {owner for package in imports_of(distribution) for owner in owners_of(package)}
    installed_for_users = {"gossamer-generic-cpu"} if distribution.name == "gossamer" else set()
    assert needs(distribution) - used == installed_for_users


def test_it_was_installed_from_here_and_not_from_an_index(distribution):
    origin = importlib.metadata.distribution(distribution.name).read_text("direct_url.json")
    assert origin is not None
    assert json.loads(origin)["url"].startswith("file:")


def test_every_test_file_has_a_name_of_its_own(distributions, root):
    places = [*(found.folder / "tests" for found in distributions), root / "tests"]
    names = Counter(path.name for place in places for path in place.rglob("test_*.py"))
    assert [name for name, count in names.items() if count > 1] == []


def test_the_layering_contracts_know_every_package(distributions, root):
    linter = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["importlinter"]
    packages = {found.package for found in distributions}
    assert set(linter["root_packages"]) == packages
    layers = next(found for found in linter["contracts"] if found["type"] == "layers")["layers"]
    assert {name for layer in layers for name in layer.split(" | ")} == packages


@pytest.mark.parametrize("session", ["demo", "tests"])
def test_the_readme_opens_with_a_command_that_runs(session, root):
    opening = (root / "README.md").read_text().partition("```sh\n")[2].partition("```")[0]
    command = (
        rf"python3 -m venv \.venv && \.venv/bin/pip install nox && \.venv/bin/nox -s {session}\b"
    )
    assert len(re.findall(command, opening)) == 1


def test_every_change_is_checked_with_the_readme_commands(root):
    checks = (root / ".ci" / "run").read_text()
    for sessions in ("tests", "lint types", "wheels"):
        assert f".venv/bin/nox -s {sessions}" in checks
