"""Sessions of the repository, derived from the pyproject.toml of every distribution.

    nox -s demo            the main job: a script becomes a kernel, checked and timed
    nox -s tests           every distribution on its own, then the repository
    nox -s "tests(ir)"     one distribution, installed with only what it declares
    nox -s lint types      ruff and import-linter; mypy --strict per distribution
    nox -s bench           against SciPy, MKL and Numba; arguments after -- (try -- --help)

Distributions of this repository are installed from wheels built here and passed by path, together
with all they need from this repository: no index is ever asked for them.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

import nox
from nox.command import CommandFailed
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

nox.needs_version = ">=2025.2.9"
nox.options.sessions = ["lint", "types", "tests"]
nox.options.default_venv_backend = "virtualenv"
nox.options.error_on_missing_interpreters = True

ROOT = Path(__file__).parent
WHEELHOUSE = ROOT / ".nox" / "wheelhouse"
GROUPS = nox.project.load_toml(ROOT / "pyproject.toml")


@dataclass(frozen=True)
class Distribution:
    """A folder with a pyproject.toml: its folder's name, its project's name and what it needs."""

    short: str
    name: str
    folder: Path
    needs: tuple[str, ...]
    extras: dict[str, tuple[str, ...]]

    def digest(self) -> str:
        """Changes when anything that goes into the wheel does."""
        sources = [path for path in self.folder.glob("src/**/*") if "__pycache__" not in path.parts]
        content = hashlib.sha256()
        for path in sorted([self.folder / "pyproject.toml", self.folder / "README.md", *sources]):
            if path.is_file():
                content.update(path.relative_to(self.folder).as_posix().encode() + b"\0")
                content.update(hashlib.sha256(path.read_bytes()).digest())
        return content.hexdigest()[:16]

    @property
    def place(self) -> str:
        """The folder as commands show it."""
        return self.folder.relative_to(ROOT).as_posix()

    def wheel_folder(self) -> Path:
        """Where the wheel of what the folder holds now belongs."""
        return WHEELHOUSE / f"{self.short}-{self.digest()}"

    def wheel(self) -> Path | None:
        """That wheel, if it has been built."""
        return next(self.wheel_folder().glob("*.whl"), None)


def names_of(requirements: list[str]) -> tuple[str, ...]:
    return tuple(canonicalize_name(Requirement(text).name) for text in requirements)


def read_distribution(pyproject: Path) -> Distribution:
    project: dict[str, Any] = nox.project.load_toml(pyproject)["project"]
    extras = project.get("optional-dependencies", {})
    return Distribution(
        short=pyproject.parent.name,
        name=canonicalize_name(project["name"]),
        folder=pyproject.parent,
        needs=names_of(project.get("dependencies", [])),
        extras={extra: names_of(listed) for extra, listed in extras.items()},
    )


FOUND = [
    read_distribution(path)
    for place in ("packages", "plugins")
    for path in sorted(ROOT.glob(f"{place}/*/pyproject.toml"))
]
BY_NAME = {distribution.name: distribution for distribution in FOUND}
ORDER = TopologicalSorter(
    {name: [need for need in found.needs if need in BY_NAME] for name, found in BY_NAME.items()}
)
DISTRIBUTIONS = [BY_NAME[name] for name in ORDER.static_order()]
PARTS = [*(distribution.short for distribution in DISTRIBUTIONS), "repository"]


def needed_by(wanted: list[Distribution], extra: str) -> list[Distribution]:
    """The distributions of this repository that `wanted` with an extra need, and themselves."""
    waiting = [name for found in wanted for name in (found.name, *found.extras.get(extra, ()))]
    names: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in BY_NAME and name not in names:
            names.add(name)
            waiting.extend(BY_NAME[name].needs)
    return [distribution for distribution in DISTRIBUTIONS if distribution.name in names]


def group(*names: str) -> list[str]:
    return list(nox.project.dependency_groups(GROUPS, *names))


def install(
    session: nox.Session, wanted: list[Distribution], *others: str, extra: str = ""
) -> None:
    """Installs `wanted` from local wheels, with `extra` of each, and what they need."""
    closure = needed_by(wanted, extra)
    session.run_install(
        "python", "-m", "pip", "uninstall", "-qq", "-y", *(d.name for d in closure), silent=True
    )
    paths = []
    for distribution in closure:
        wheel = distribution.wheel()
        if wheel is None:
            session.error(f"{distribution.short} has changed since its wheel was built")
        path = os.path.join(".", wheel.relative_to(ROOT))
        paths.append(f"{path}[{extra}]" if extra and distribution in wanted else path)
    session.install(*paths, *others)


@nox.session(reuse_venv=True)
def wheels(session: nox.Session) -> None:
    """Builds the wheels of the distributions that changed; the others need it."""
    stale = [distribution for distribution in DISTRIBUTIONS if distribution.wheel() is None]
    if not stale:
        session.log("all wheels are up to date")
        return
    session.install("hatchling>=1.21")
    for distribution in stale:
        target = distribution.wheel_folder().relative_to(ROOT)
        build = ["pip", "wheel", "-q", "--no-deps", "--no-build-isolation"]
        session.run("python", "-m", *build, "-w", str(target), f"./{distribution.place}")


@nox.session(requires=["wheels"])
def demo(session: nox.Session) -> None:
    """The main job; arguments after -- go to `gossamer demo`."""
    install(session, [BY_NAME["gossamer"]])
    session.run("gossamer", "demo", *session.posargs)


@nox.session(requires=["wheels"])
@nox.parametrize("part", [nox.param(part, id=part) for part in PARTS])
def tests(session: nox.Session, part: str) -> None:
    """One distribution with only what it declares, or the repository with all of them."""
    env = {"GOSSAMER_CACHE_DIR": session.create_tmp()}
    if part == "repository":
        install(session, DISTRIBUTIONS, *group("test"))
        session.run("python", "-m", "pytest", "-q", "tests", *session.posargs, env=env)
        return
    distribution = next(item for item in DISTRIBUTIONS if item.short == part)
    install(session, [distribution], extra="test")
    session.run("pytest", "-q", f"{distribution.place}/tests", *session.posargs, env=env)


@nox.session
def lint(session: nox.Session) -> None:
    """Style and layering; nothing of ours needs to be installed to be read."""
    session.install(*group("lint"))
    session.run("ruff", "check", "--no-cache")
    session.run("ruff", "format", "--check")
    sources = os.pathsep.join(f"{distribution.place}/src" for distribution in DISTRIBUTIONS)
    session.run("lint-imports", "--no-cache", env={"PYTHONPATH": sources})


@nox.session(requires=["wheels"])
def types(session: nox.Session) -> None:
    """mypy --strict, one distribution after the other, then the files beside them."""
    install(session, DISTRIBUTIONS, *group("types"))
    targets = {d.short: [f"{d.place}/src"] for d in DISTRIBUTIONS}
    targets["repository"] = ["noxfile.py", "benchmarks", "docs"]
    wrong = []
    for name, paths in targets.items():
        session.log(f"types of {name}")
        try:
            session.run("mypy", "--strict", *paths)
        except CommandFailed:
            wrong.append(name)
    if wrong:
        session.error(f"mypy found errors in {', '.join(wrong)}")


@nox.session(requires=["wheels"])
def bench(session: nox.Session) -> None:
    """The benchmark; arguments after -- go to `python -m benchmarks`."""
    install(session, [BY_NAME["gossamer"]], *group("bench"))
    session.run("python", "-m", "benchmarks", *session.posargs)
