"""Sessions of the repository, derived from the pyproject.toml of every distribution.

    nox -s demo            the main job: a script becomes a kernel, checked and timed
    nox -s tests           every distribution on its own, then all of them together
    nox -s "tests(ir)"     one distribution, installed with only what it declares, and its coverage
    nox -s lint types      ruff and import-linter; mypy --strict
    nox -s wire            the tests that serialize everything that packages exchange
    nox -s wheels          the README examples of each wheel, installed alone
    nox -s lowest          the tests with the lowest declared versions of all requirements
    nox -s pythons         the tests with each supported Python that is installed
    nox -s generate        writes generated files that have changed
    nox -s aarch64         tests in an emulated Python of AArch64; more of them after --
    nox -s riscv64         those in one of RISC-V
    nox -s fuzz            random programs against an oracle of NumPy alone (try -- --help)
    nox -s fuzz_scalable   2,000 random programs and schedules in scalable vectors, at every vector length
    nox -s docs            the documentation site in .nox/site, with notebooks of the tutorials
    nox -s bench           against SciPy, MKL, Numba, torch; arguments after -- (try -- --help)

Distributions of this repository are installed from wheels that are built here and passed by path, with
all distributions of this repository that they need. They are never looked up in an index.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import nox

# nox imports this file by its path, so that the folder of the repository is not searched for modules.
sys.path.insert(0, os.path.dirname(__file__))

from tools.sessions.distributions import (
    ALL_DISTRIBUTIONS,
    BY_NAME,
    BY_SHORT,
    LARGE_DISTRIBUTIONS,
    SMALL_DISTRIBUTIONS,
    dependencies_of,
    lower_bounds,
    third_party,
)
from tools.sessions.testing import (
    NEEDING_TORCH,
    PARALLEL,
    SERIALIZED,
    SHARED_TESTS,
    WIRED,
    environment_for_tests,
    install_everything,
    run_tests,
    test_in_emulator,
)
from tools.sessions.wheels import (
    build_wheels,
    group_requirements,
    install,
    install_extra,
    require_complete,
    wheel_of,
    wheel_path,
)

nox.needs_version = ">=2026.10.20"
nox.options.sessions = ["lint", "types", "tests"]
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.download_python = "never"
nox.options.error_on_missing_interpreters = True

COVERED = 90
"""Percentage of the statements of a distribution that its own tests have to execute."""
PYTHONS = BY_SHORT["gossamer"].pythons
"""The supported Pythons, oldest first."""
EACH = [nox.param(short, id=short) for short in BY_SHORT]


@nox.session(reuse_venv=True)
def build(session: nox.Session) -> None:
    """Build the wheels of changed distributions; the other sessions require it."""
    build_wheels(session)


@nox.session(requires=["build"])
def demo(session: nox.Session) -> None:
    """Run `gossamer demo` with the arguments after --."""
    install(session, [BY_NAME["gossamer"]])
    session.run("gossamer", "demo", *session.posargs)


@nox.session(requires=["build"])
@nox.parametrize("part", [*EACH, *(nox.param(name, id=name) for name in SHARED_TESTS)])
def tests(session: nox.Session, part: str) -> None:
    """Test one distribution with only its declared requirements, or all of them together.

    `integration` and `repository` are the tests of all distributions together. For one distribution, first
    the README examples run, with its wheel alone. Its tests must execute most of its statements. If a session
    has several packages, what they exchange is serialized, except in tests with the mark `unserialized`,
    which run on their own. With arguments after --, only tests run, and nothing is measured or serialized.
    """
    if part in SHARED_TESTS:
        env = install_everything(session)
        large = [wheel_of(session, BY_SHORT[short]) for short in sorted(LARGE_DISTRIBUTIONS)]
        session.install("--no-deps", *map(wheel_path, large))
        run_tests(session, SHARED_TESTS[part], ["--some-borders"], env=env)
        return
    distribution, env = BY_SHORT[part], environment_for_tests(session.create_tmp())
    if session.posargs:
        install(session, [distribution], *group_requirements("parallel"), extra="test")
    else:
        require_complete(session, distribution)
        install_extra(session, distribution, "test", *group_requirements("parallel"))
    measured = ["-p", "tests.pytest_plugins.executed", "--executed", distribution.package]
    options = [*measured, "--executed-min", str(COVERED)]
    run_tests(
        session, [f"{distribution.path}/tests"], options, env=env, is_wired=part == "gossamer"
    )
    if part in LARGE_DISTRIBUTIONS:
        # The session `types` has no types of what it does not install.
        session.run("mypy", "--strict", f"{distribution.path}/src")
        install(session, SMALL_DISTRIBUTIONS)
        session.run("python", "-m", "pytest", "-q", "-k", "torch", *NEEDING_TORCH, env=env)


@nox.session(requires=["build"])
def generate(session: nox.Session) -> None:
    """Write generated files that have changed: `python -m tools.generate` with the arguments after --."""
    env = install_everything(session)
    session.run("python", "-m", "tools.generate", *session.posargs, env=env)


@nox.session(requires=["build"])
def wire(session: nox.Session) -> None:
    """Run the tests that serialize everything that packages exchange; see tests/pytest_plugins/wire.py."""
    env = install_everything(session)
    places = session.posargs or ["packages/gossamer/tests", "tests", *SERIALIZED]
    session.run("python", "-m", "pytest", "-q", *PARALLEL, *WIRED, *places, env=env)


@nox.session(requires=["build"])
def aarch64(session: nox.Session) -> None:
    """Run tests in a Python of AArch64, which an emulator runs: those after --, or a selection of them.

    That Python takes ten to thirty times as long as one of this machine, so the selection has of each subject
    the tests that differ between architectures. Some others fail there: those of forks with threads of the
    pool or of libgomp, and of limits of memory. The emulator (QEMU 7.2) accepts `MADV_WIPEONFORK` without
    effect, takes memory of its own, and shows few fields of `/proc/self/stat`.
    """
    test_in_emulator(session, "aarch64")


@nox.session(requires=["build"])
def riscv64(session: nox.Session) -> None:
    """Run the same tests in a Python of RISC-V, all of whose packages are those of Debian's next release.

    It takes several minutes, since no other Python compiles its modules.
    """
    test_in_emulator(session, "riscv64")


@nox.session(requires=["build"])
def fuzz(session: nox.Session) -> None:
    """Run random programs at every stage and as machine code; see docs/fuzzing.md."""
    env = install_everything(session)
    session.run("python", "-m", "tests.fuzzing.commands", *session.posargs, env=env)


@nox.session(requires=["build"])
@nox.parametrize("backend", ["llvm-sve", "llvm-rvv"], ids=["llvm-sve", "llvm-rvv"])
def fuzz_scalable(session: nox.Session, backend: str) -> None:
    """Run random programs with random steps that make scalable vectors, emulated at every vector length."""
    env = install_everything(session)
    how = ("--schedules", "2000", "--scalable", backend, "--native", "1", "--minutes", "240")
    session.run("python", "-m", "tests.fuzzing.commands", *how, *session.posargs, env=env)


@nox.session(requires=["build"])
@nox.parametrize("part", EACH)
def wheels(session: nox.Session, part: str) -> None:
    """Run the README examples of one wheel, installed alone, as the session of its tests does first."""
    require_complete(session, BY_SHORT[part])


@nox.session(requires=["build"], python=PYTHONS[0])
@nox.parametrize("part", EACH)
def lowest(session: nox.Session, part: str) -> None:
    """Run the tests of one distribution with the lowest declared versions of all requirements."""
    distribution = BY_SHORT[part]
    closure = dependencies_of([distribution], extra="test")
    bounds = lower_bounds(third_party(closure, *distribution.extras["test"]))
    constraints = Path(session.create_tmp()) / "lowest.txt"
    constraints.write_text("\n".join(bounds))
    session.log(f"lowest versions: {', '.join(bounds)}")
    install(session, [distribution], "--constraint", str(constraints), extra="test")
    env = environment_for_tests(session.create_tmp())
    session.run("pytest", "-q", f"{distribution.path}/tests", *session.posargs, env=env)


@nox.session(python=False)
@nox.parametrize("version", [nox.param(version, id=version) for version in PYTHONS])
def pythons(session: nox.Session, version: str) -> None:
    """Run the session `tests`, or the sessions after --, with one Python, if it is installed."""
    command = shutil.which(f"python{version}")
    if command is None or not runs(command):
        session.skip(f"Python {version} is not installed")
    wanted = session.posargs or ["tests"]
    nox_itself = (sys.executable, "-m", "nox", "--force-python", version)
    session.run(*nox_itself, "-s", *wanted, external=True)


def runs(command: str) -> bool:
    """Return whether an interpreter starts: its command may be a stub of a version manager."""
    return subprocess.run([command, "-c", ""], capture_output=True, check=False).returncode == 0


@nox.session
def lint(session: nox.Session) -> None:
    """Check style and import layers, without installing any distribution."""
    session.install(*group_requirements("lint"))
    session.run("ruff", "check", "--no-cache")
    session.run("ruff", "format", "--check")
    sources = os.pathsep.join(f"{distribution.path}/src" for distribution in ALL_DISTRIBUTIONS)
    session.run("lint-imports", "--no-cache", env={"PYTHONPATH": sources})


@nox.session
def types(session: nox.Session) -> None:
    """Run mypy --strict on all distributions and on the files beside them, at once, so that it reads
    each of them once. Those in `LARGE_DISTRIBUTIONS` are checked by the sessions of their tests."""
    session.install(
        *sorted({*map(str, third_party(SMALL_DISTRIBUTIONS))}), *group_requirements("types")
    )
    beside = ("noxfile.py", "benchmarks", "docs", "examples", "tools")
    session.run("mypy", "--strict", *(f"{d.path}/src" for d in SMALL_DISTRIBUTIONS), *beside)


@nox.session
def docs(session: nox.Session) -> None:
    """Build the documentation site; warnings are errors.

    Nothing of ours is installed: the API reference is read from the sources. The tests execute the
    tutorials; this session makes notebooks of them.
    """
    session.install(*group_requirements("docs"))
    session.run("python", "-m", "doctest", *map(str, Path("docs/site").glob("*.py")))
    env = {"NO_MKDOCS_2_WARNING": "1"}
    session.run("mkdocs", "build", "--strict", "--quiet", *session.posargs, env=env)
    session.run("python", "docs/site/check.py", ".nox/site")


@nox.session(requires=["build"])
def bench(session: nox.Session) -> None:
    """Run `python -m benchmarks` with the arguments after --."""
    wanted = [BY_NAME[name] for name in ("gossamer", "gossamer-testkit")]
    torch = group_requirements("bench-torch") if takes_torch(session.posargs) else ()
    install(session, wanted, *group_requirements("bench"), *torch)
    session.run("python", "-m", "benchmarks", *session.posargs)


def takes_torch(arguments: list[str]) -> bool:
    """Return whether torch is among the contenders of the benchmark, as it is by default."""
    if {"report", "--help", "-h"} & set(arguments):
        return False
    return "torch" in arguments if "--contenders" in arguments else True
