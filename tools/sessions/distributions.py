"""The distributions of this repository, from the pyproject.toml of each, and what they require."""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Iterable
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any, NamedTuple

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tools import ROOT

WHEELHOUSE = ROOT / ".nox" / "wheelhouse"


class Distribution(NamedTuple):
    """A folder with a pyproject.toml: the name of the folder, the name of the project, its requirements,
    and the supported Pythons."""

    short: str
    name: str
    folder: Path
    requirements: tuple[Requirement, ...]
    extras: dict[str, tuple[Requirement, ...]]
    pythons: tuple[str, ...]

    @property
    def package(self) -> str:
        """The name of the import package."""
        return self.name.replace("-", "_")

    def digest(self) -> str:
        """Return a hash of everything that goes into the wheel."""
        sources = [path for path in self.folder.glob("src/**/*") if "__pycache__" not in path.parts]
        content = hashlib.sha256()
        beside = [self.folder / name for name in ("LICENSE", "README.md", "pyproject.toml")]
        for path in sorted([*beside, *sources]):
            if path.is_file():
                content.update(path.relative_to(self.folder).as_posix().encode() + b"\0")
                content.update(hashlib.sha256(path.read_bytes()).digest())
        return content.hexdigest()[:16]

    @property
    def path(self) -> str:
        """The path of the folder, relative to the repository."""
        return self.folder.relative_to(ROOT).as_posix()

    def wheel_folder(self) -> Path:
        """Return the folder of the wheel for the current contents."""
        return WHEELHOUSE / f"{self.short}-{self.digest()}"

    def wheel(self) -> Path | None:
        """Return the wheel for the current contents, if it has been built."""
        return next(self.wheel_folder().glob("*.whl"), None)


def requirement_names(requirements: Iterable[Requirement]) -> tuple[str, ...]:
    return tuple(canonicalize_name(requirement.name) for requirement in requirements)


def parse_requirements(requirements: Iterable[str]) -> tuple[Requirement, ...]:
    return tuple(Requirement(text) for text in requirements)


def read_distribution(pyproject: Path) -> Distribution:
    project: dict[str, Any] = tomllib.loads(pyproject.read_text())["project"]
    extras = project.get("optional-dependencies", {})
    return Distribution(
        short=pyproject.parent.name,
        name=canonicalize_name(project["name"]),
        folder=pyproject.parent,
        requirements=parse_requirements(project.get("dependencies", [])),
        extras={extra: parse_requirements(listed) for extra, listed in extras.items()},
        pythons=tuple(re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"]))),
    )


def read_distributions() -> list[Distribution]:
    paths = (*ROOT.glob("packages/*/pyproject.toml"), *ROOT.glob("plugins/*/pyproject.toml"))
    return [read_distribution(path) for path in sorted(paths)]


BY_NAME = {distribution.name: distribution for distribution in read_distributions()}
ORDER = TopologicalSorter(
    {
        name: [need for need in requirement_names(distribution.requirements) if need in BY_NAME]
        for name, distribution in BY_NAME.items()
    }
)
ALL_DISTRIBUTIONS = [BY_NAME[name] for name in ORDER.static_order()]
BY_SHORT = {distribution.short: distribution for distribution in ALL_DISTRIBUTIONS}
LARGE_DISTRIBUTIONS = {"torch": "bench-torch"}
"""Distributions with requirements of gigabytes, which only their own sessions install, each with the group
that has the version of these: benchmarks use the same."""
SMALL_DISTRIBUTIONS = [
    distribution
    for distribution in ALL_DISTRIBUTIONS
    if distribution.short not in LARGE_DISTRIBUTIONS
]


def dependencies_of(wanted: list[Distribution], extra: str) -> list[Distribution]:
    """Return `wanted` and the distributions of this repository that they need with an extra."""
    waiting = [
        name
        for distribution in wanted
        for name in (distribution.name, *requirement_names(distribution.extras.get(extra, ())))
    ]
    names: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in BY_NAME and name not in names:
            names.add(name)
            waiting.extend(requirement_names(BY_NAME[name].requirements))
    return [distribution for distribution in ALL_DISTRIBUTIONS if distribution.name in names]


def third_party(closure: list[Distribution], *extras: Requirement) -> list[Requirement]:
    """Return the requirements of the distributions that are not in this repository."""
    listed = [*(requirement for each in closure for requirement in each.requirements), *extras]
    return [
        requirement for requirement in listed if canonicalize_name(requirement.name) not in BY_NAME
    ]


def lower_bounds(requirements: Iterable[Requirement]) -> list[str]:
    """Return the lowest version of each requirement that all allow, as `name==version`."""
    bounds: dict[str, Version] = {}
    for requirement in requirements:
        lowest = [Version(item.version) for item in requirement.specifier if item.operator == ">="]
        bounds[requirement.name] = max([*lowest, bounds.get(requirement.name, Version("0"))])
    return [f"{name}=={version}" for name, version in sorted(bounds.items())]
