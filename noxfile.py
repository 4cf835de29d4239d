"""Sessions of the repository, derived from the pyproject.toml of every distribution.

    nox -s demo            the main job: a script becomes a kernel, checked and timed
    nox -s tests           every distribution on its own, then the repository
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

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any, NamedTuple

import nox
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

nox.needs_version = ">=2026.10.20"
nox.options.sessions = ["lint", "types", "tests"]
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.download_python = "never"
nox.options.error_on_missing_interpreters = True

ROOT = Path(__file__).parent
WHEELHOUSE = ROOT / ".nox" / "wheelhouse"
COVERED = 90
"""Percentage of the statements of a distribution that its own tests have to execute."""
GROUPS = nox.project.load_toml(ROOT / "pyproject.toml")


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
    project: dict[str, Any] = nox.project.load_toml(pyproject)["project"]
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
DISTRIBUTIONS = [BY_NAME[name] for name in ORDER.static_order()]
BY_SHORT = {distribution.short: distribution for distribution in DISTRIBUTIONS}
LARGE = {"torch": "bench-torch"}
"""Distributions with requirements of gigabytes, which only their own sessions install, each with the group
that has the version of these: benchmarks use the same."""
SMALL = [distribution for distribution in DISTRIBUTIONS if distribution.short not in LARGE]
UNSERIALIZED = ("-m", "unserialized")
"""Options of pytest that select the tests that add nothing to the test of borders between packages."""
SERIALIZED = ("-m", "not unserialized")
"""Options of pytest that select the other tests."""
WIRED = ("-p", "tests.pytest_plugins.wire")
"""Options of pytest that serialize everything that packages exchange."""
PARALLEL = ("-n", "auto", "--maxprocesses", "8", "--dist", "worksteal")
"""Options of pytest-xdist: most tests compile in one thread."""
PYTHONS = BY_SHORT["gossamer"].pythons
"""The supported Pythons, oldest first."""
EACH = [nox.param(short, id=short) for short in BY_SHORT]
NATIVE_TESTS = (
    "packages/host-runtime/tests/detection",
    "packages/host-runtime/tests/loading/test_elf.py",
    "packages/host-runtime/tests/loading/test_object_file.py::test_no_mutant_of_an_object_crashes_the_process[library]",
    "packages/host-runtime/tests/parallel/test_pool.py::test_each_region_is_complete_when_it_ends",
    "packages/host-runtime/tests/parallel/test_pool.py::test_numbers_of_threads_that_change",
    "packages/host-runtime/tests/test_native_kernel.py",
    "plugins/llvm-sve/tests/test_native.py",
    "plugins/llvm-sve/tests/test_conformance.py::TestLlvmSve::test_the_number_of_threads_changes_nothing",
    "plugins/generic-cpu/tests/test_conformance.py::TestGenericCpu::test_the_number_of_threads_changes_nothing",
    "tests/integration/test_native_operators.py",
)
"""The tests that the sessions `aarch64` and `riscv64` run."""
UNPACKING_PROGRAMS = ("apt-get", "dpkg-deb", "tar")


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
    return [distribution for distribution in DISTRIBUTIONS if distribution.name in names]


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


@nox.session(reuse_venv=True)
def build(session: nox.Session) -> None:
    """Build the wheels of changed distributions; the other sessions require it."""
    stale = [distribution for distribution in DISTRIBUTIONS if distribution.wheel() is None]
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


@nox.session(requires=["build"])
def demo(session: nox.Session) -> None:
    """Run `gossamer demo` with the arguments after --."""
    install(session, [BY_NAME["gossamer"]])
    session.run("gossamer", "demo", *session.posargs)


@nox.session(requires=["build"])
@nox.parametrize("part", [*EACH, nox.param("repository", id="repository")])
def tests(session: nox.Session, part: str) -> None:
    """Test one distribution with only its declared requirements, or the repository with all distributions.

    First the README examples of the distribution run, with its wheel alone. Its tests must execute most of
    its statements. If a session has several packages, what they exchange is serialized, except in tests with
    the mark `unserialized`, which run on their own. With arguments after --, only tests run, and nothing is
    measured or serialized.
    """
    env = {"GOSSAMER_CACHE_DIR": session.create_tmp()}
    if part == "repository":
        install(session, SMALL, *group_requirements("test"))
        large = [wheel_of(session, BY_SHORT[short]) for short in sorted(LARGE)]
        session.install("--no-deps", *map(wheel_path, large))
        run_tests(session, "tests", ["--some-borders"], env=env)
        return
    distribution = BY_SHORT[part]
    if session.posargs:
        install(session, [distribution], *group_requirements("parallel"), extra="test")
    else:
        require_complete(session, distribution)
        install_extra(session, distribution, "test", *group_requirements("parallel"))
    measured = ["-p", "tests.pytest_plugins.executed", "--executed", distribution.package]
    options = [*measured, "--executed-least", str(COVERED)]
    run_tests(session, f"{distribution.path}/tests", options, env=env, is_wired=part == "gossamer")
    if part in LARGE:
        # The session `types` has no types of what it does not install.
        session.run("mypy", "--strict", f"{distribution.path}/src")


def run_tests(
    session: nox.Session,
    path: str,
    options: Sequence[str],
    *,
    env: dict[str, str],
    is_wired: bool = True,
) -> None:
    """Run the tests of a folder with some options. A wired session first runs those with the mark
    `unserialized`, as they are, and only the others with the options."""
    pytest = ("python", "-m", "pytest", "-q", *PARALLEL)
    if session.posargs:
        session.run(*pytest, path, *session.posargs, env=env)
        return
    if is_wired:
        session.run(*pytest, path, *UNSERIALIZED, env=env)
    wired = (*WIRED, *SERIALIZED) if is_wired else ()
    session.run(*pytest, path, *wired, *options, env=env)


@nox.session(requires=["build"])
def generate(session: nox.Session) -> None:
    """Write generated files that have changed: `python -m tools.generate` with the arguments after --."""
    install(session, SMALL, *group_requirements("test"))
    env = {"GOSSAMER_CACHE_DIR": session.create_tmp()}
    session.run("python", "-m", "tools.generate", *session.posargs, env=env)


@nox.session(requires=["build"])
def wire(session: nox.Session) -> None:
    """Run the tests that serialize everything that packages exchange; see tests/pytest_plugins/wire.py."""
    install(session, SMALL, *group_requirements("test"))
    places = session.posargs or ["packages/gossamer/tests", "tests", *SERIALIZED]
    env = {"GOSSAMER_CACHE_DIR": session.create_tmp()}
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


def test_in_emulator(session: nox.Session, architecture: str) -> None:
    """Run tests in a Python of an architecture."""
    programs = (*UNPACKING_PROGRAMS, f"qemu-{architecture}-static")
    missing = [name for name in programs if shutil.which(name) is None]
    if missing:
        session.skip(f"{', '.join(missing)} not installed (Debian's packages are unpacked and run)")
    session.install("uv" if session.venv_backend == "uv" else "pip")
    root = (Path(session.create_tmp()) / "root").resolve()
    needed = third_party(SMALL, *parse_requirements(group_requirements("emulated")))
    wheels = [str(wheel_of(session, distribution)) for distribution in SMALL]
    listed = sorted({str(requirement) for requirement in needed})
    made = ("python", "-m", "tools.emulated_python", architecture, str(root), *listed, *wheels)
    session.run(*made, success_codes=[0, 3])
    python, chosen = root / "usr/bin/python", session.posargs or NATIVE_TESTS
    if not python.exists():
        session.skip(f"apt-get has no source with Debian's packages for {architecture}")
    env = {"GOSSAMER_CACHE_DIR": str(root / "cache")}
    options = ("-q", "-p", "no:cacheprovider")
    session.run(str(python), "-m", "pytest", *options, *chosen, env=env, external=True)


@nox.session(requires=["build"])
def fuzz(session: nox.Session) -> None:
    """Run random programs at every stage and as machine code; see docs/fuzzing.md."""
    install(session, SMALL, *group_requirements("test"))
    env = {"GOSSAMER_CACHE_DIR": session.create_tmp()}
    session.run("python", "-m", "tests.fuzzing.commands", *session.posargs, env=env)


@nox.session(requires=["build"])
@nox.parametrize("backend", ["llvm-sve", "llvm-rvv"], ids=["llvm-sve", "llvm-rvv"])
def fuzz_scalable(session: nox.Session, backend: str) -> None:
    """Run random programs with random steps that make scalable vectors, emulated at every vector length."""
    install(session, SMALL, *group_requirements("test"))
    env = {"GOSSAMER_CACHE_DIR": session.create_tmp()}
    how = ("--schedules", "2000", "--scalable", backend, "--native", "1", "--minutes", "240")
    session.run("python", "-m", "tests.fuzzing.commands", *how, *session.posargs, env=env)


@nox.session(requires=["build"])
@nox.parametrize("part", EACH)
def wheels(session: nox.Session, part: str) -> None:
    """Run the README examples of one wheel, installed alone, as the session of its tests does first."""
    require_complete(session, BY_SHORT[part])


def require_complete(session: nox.Session, distribution: Distribution) -> None:
    """Install one wheel with its requirements from a folder of wheels, and run its README examples."""
    closure = dependencies_of([distribution], extra="")
    uninstall(session, DISTRIBUTIONS)
    wheelhouse = Path(session.create_tmp()) / "wheels"
    shutil.rmtree(wheelhouse, ignore_errors=True)
    wheelhouse.mkdir()
    for built in DISTRIBUTIONS:
        shutil.copy(wheel_of(session, built), wheelhouse)
    versions = group_requirements(LARGE[distribution.short]) if distribution.short in LARGE else ()
    session.install(*sorted({str(need) for need in third_party(closure)}), *versions)
    # The cache of uv knows wheels of a folder by name and version: those of an earlier build would come.
    fresh = {"UV_NO_CACHE": "1"}
    session.install("--no-index", "--find-links", str(wheelhouse), distribution.name, env=fresh)
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
    env = {"GOSSAMER_CACHE_DIR": session.create_tmp()}
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
    sources = os.pathsep.join(f"{distribution.path}/src" for distribution in DISTRIBUTIONS)
    session.run("lint-imports", "--no-cache", env={"PYTHONPATH": sources})


@nox.session
def types(session: nox.Session) -> None:
    """Run mypy --strict on all distributions and on the files beside them, at once, so that it reads
    each of them once. Those in `LARGE` are checked by the sessions of their tests."""
    session.install(*sorted({*map(str, third_party(SMALL))}), *group_requirements("types"))
    beside = ("noxfile.py", "benchmarks", "docs", "examples", "tools")
    session.run("mypy", "--strict", *(f"{d.path}/src" for d in SMALL), *beside)


@nox.session
def docs(session: nox.Session) -> None:
    """Build the documentation site; warnings are errors.

    Nothing of ours is installed: the API reference is read from the sources. The tests execute the
    tutorials; this session makes notebooks of them.
    """
    session.install(*group_requirements("docs"))
    session.run("python", "-m", "doctest", *map(str, ROOT.glob("docs/site/*.py")))
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


def takes_torch(arguments: Sequence[str]) -> bool:
    """Return whether torch is among the contenders of the benchmark, as it is by default."""
    if {"report", "--help", "-h"} & set(arguments):
        return False
    return "torch" in arguments if "--contenders" in arguments else True
