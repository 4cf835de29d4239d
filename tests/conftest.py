"""The distributions of the repository, read from their files."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
SHOWN = ROOT / "tests" / "golden" / "shown.json"
"""For each test that uses `is_shown_within`, the first number of an item that reveals the defect."""


@dataclass(frozen=True)
class Distribution:
    folder: Path
    project: dict[str, Any]

    @property
    def name(self) -> str:
        return self.project["name"]

    @property
    def package(self) -> str:
        return self.name.replace("-", "_")

    @property
    def source(self) -> Path:
        return self.folder / "src" / self.package

    def __str__(self) -> str:
        return self.name


def read_distributions() -> list[Distribution]:
    files = [*ROOT.glob("packages/*/pyproject.toml"), *ROOT.glob("plugins/*/pyproject.toml")]
    return [Distribution(p.parent, tomllib.loads(p.read_text())["project"]) for p in sorted(files)]


def pytest_addoption(parser):
    try:  # the tests of the language have it, too, and may be run together with these
        parser.addoption("--update-golden", action="store_true", help="Rewrite the golden files.")
    except ValueError as error:
        if "already added" not in str(error):
            raise


def pytest_generate_tests(metafunc):
    if "distribution" in metafunc.fixturenames:
        metafunc.parametrize("distribution", read_distributions(), ids=str)


@pytest.fixture
def distributions():
    return read_distributions()


@pytest.fixture
def root():
    return ROOT


@pytest.fixture
def is_shown_within(request):
    """Return whether one of the first so many items reveals a defect. The item that is known to reveal it is
    tried first, because drawing all programs before it takes minutes. `--update-golden` stores the first
    one."""
    name = f"{request.path.stem}[{request.node.callspec.id}]"

    def found(most: int, shows: Callable[[int], bool]) -> bool:
        known = json.loads(SHOWN.read_text())
        is_update = request.config.getoption("--update-golden", default=False)
        if not is_update and name in known and shows(known[name]):
            return True
        first = next(filter(shows, range(most)), None)
        if is_update and first is not None:
            SHOWN.write_text(
                json.dumps(dict(sorted({**known, name: first}.items())), indent=1) + "\n"
            )
        return first is not None

    return found
