"""The distributions of the repository, read from their files."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]


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


def pytest_generate_tests(metafunc):
    if "distribution" in metafunc.fixturenames:
        metafunc.parametrize("distribution", read_distributions(), ids=str)


@pytest.fixture
def distributions():
    return read_distributions()


@pytest.fixture
def root():
    return ROOT
