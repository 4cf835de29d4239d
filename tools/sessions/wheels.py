"""Wheels that sessions install: those of this repository, which are built once, and their requirements."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import nox

from tools import ROOT
from tools.sessions.bytecode import share_bytecode
from tools.sessions.distributions import (
    ALL_DISTRIBUTIONS,
    LARGE_DISTRIBUTIONS,
    Distribution,
    dependencies_of,
    third_party,
)

GROUPS = nox.project.load_toml(ROOT / "pyproject.toml")


def group_requirements(*names: str) -> list[str]:
    return list(nox.project.dependency_groups(GROUPS, *names))


def install(
    session: nox.Session, wanted: list[Distribution], *others: str, extra: str = ""
) -> None:
    """Install `wanted` from local wheels, with `extra` of each, and their requirements."""
    closure = dependencies_of(wanted, extra)
    uninstall(session, closure)
    paths = []
    for distribution in closure:
        path = wheel_path(wheel_of(session, distribution))
        paths.append(f"{path}[{extra}]" if extra and distribution in wanted else path)
    session.install(*paths, *others)
    share_bytecode(session)


def uninstall(session: nox.Session, closure: list[Distribution]) -> None:
    """Uninstall wheels of an earlier build, which have the same version."""
    session.run_install(*pip(session), "uninstall", "-y", *(d.name for d in closure), silent=True)


def install_extra(session: nox.Session, wanted: Distribution, extra: str, *others: str) -> None:
    """Install what an extra adds to the distribution that `require_complete` has installed: its modules stay,
    with those that have been compiled."""
    closure = dependencies_of([wanted], extra)
    needed = third_party(closure, *wanted.extras[extra])
    session.install(*sorted({str(requirement) for requirement in needed}), *others)
    complete = dependencies_of([wanted], extra="")
    added = [wheel_of(session, each) for each in closure if each not in complete]
    if added:
        session.install("--no-deps", *map(wheel_path, added))
    share_bytecode(session)


def wheel_path(wheel: Path) -> str:
    """Return the path by which pip takes a wheel."""
    return os.path.join(".", wheel.relative_to(ROOT))


def pip(session: nox.Session) -> tuple[str, ...]:
    """Return the command of pip, or of uv, which does the same for environments that it makes."""
    return ("uv", "pip") if session.venv_backend == "uv" else ("python", "-m", "pip")


def wheel_of(session: nox.Session, distribution: Distribution) -> Path:
    wheel = distribution.wheel()
    if wheel is None:
        session.error(f"{distribution.short} has changed since its wheel was built")
    return wheel


def build_wheels(session: nox.Session) -> None:
    """Build the wheels of distributions that have changed since their wheels were built."""
    stale = [distribution for distribution in ALL_DISTRIBUTIONS if distribution.wheel() is None]
    if not stale:
        session.log("all wheels are up to date")
        return
    session.install("hatchling>=1.27", "pip")
    built = session.create_tmp()
    build = ["pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", built]
    session.run("python", "-m", *build, *(f"./{distribution.path}" for distribution in stale))
    for distribution in stale:
        distribution.wheel_folder().mkdir(parents=True, exist_ok=True)
        (wheel,) = Path(built).glob(f"{distribution.package}-*.whl")
        shutil.move(wheel, distribution.wheel_folder())


def require_complete(session: nox.Session, distribution: Distribution) -> None:
    """Install one wheel with its requirements from a folder of wheels, and run its README examples."""
    closure = dependencies_of([distribution], extra="")
    uninstall(session, ALL_DISTRIBUTIONS)
    wheelhouse = Path(session.create_tmp()) / "wheels"
    shutil.rmtree(wheelhouse, ignore_errors=True)
    wheelhouse.mkdir()
    for built in ALL_DISTRIBUTIONS:
        shutil.copy(wheel_of(session, built), wheelhouse)
    versions = (
        group_requirements(LARGE_DISTRIBUTIONS[distribution.short])
        if distribution.short in LARGE_DISTRIBUTIONS
        else ()
    )
    session.install(*sorted({str(need) for need in third_party(closure)}), *versions)
    # The cache of uv knows wheels of a folder by name and version: those of an earlier build would come.
    fresh = {"UV_NO_CACHE": "1"}
    session.install("--no-index", "--find-links", str(wheelhouse), distribution.name, env=fresh)
    share_bytecode(session)
    session.run(*pip(session), "check")
    ours = str(session.run("python", "-c", INSTALLED, silent=True))
    if ours.split() != sorted(needed.name for needed in closure):
        session.error(f"{distribution.name} came with {ours}")
    session.run("python", "-c", f"import {distribution.package}")
    with session.chdir(session.create_tmp()):
        env = {"GOSSAMER_CACHE_DIR": os.path.abspath("cache")}
        readme = distribution.folder / "README.md"
        session.run(
            "python", "-W", "error", str(ROOT / "tests/doctests/documents.py"), str(readme), env=env
        )


INSTALLED = """
from importlib.metadata import distributions
names = {distribution.name for distribution in distributions() if distribution.name.startswith("gossamer")}
print(*sorted(names))
"""
