"""The distributions of the repository, read from their files, and what tests of several folders share."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gossamer.targets.resolve_target import registry
from gossamer_ir.interchange.records import Target
from tests.integration.emulated_targets import EMULATED_LENGTHS, TARGETS

ROOT = Path(__file__).resolve().parents[1]
SHOWN = ROOT / "tests" / "golden" / "shown.json"
"""For each test that uses `require_shown_within`, the number of an item that reveals the defect."""
SEARCH = "python -m pytest -n 0 --update-golden"


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

    @property
    def needs(self) -> set[str]:
        """The names of its requirements."""
        return {name_of(requirement) for requirement in self.project["dependencies"]}

    @property
    def optional_needs(self) -> set[str]:
        """The names of the requirements of its extras, but for the tests."""
        extras = self.project["optional-dependencies"]
        return {
            name_of(item) for extra, listed in extras.items() if extra != "test" for item in listed
        }

    def __str__(self) -> str:
        return self.name


def name_of(requirement: str) -> str:
    """Return the name of the distribution that a requirement is for."""
    name = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert name is not None
    return name[0].lower()


def read_distributions() -> list[Distribution]:
    files = [*ROOT.glob("packages/*/pyproject.toml"), *ROOT.glob("plugins/*/pyproject.toml")]
    return [Distribution(p.parent, tomllib.loads(p.read_text())["project"]) for p in sorted(files)]


def installed_distribution(distribution: Distribution) -> importlib.metadata.Distribution:
    """Return the record of an installed distribution; skip the test for one that needs torch and is not
    installed."""
    try:
        return importlib.metadata.distribution(distribution.name)
    except importlib.metadata.PackageNotFoundError:
        if "torch" not in distribution.needs:
            raise
        pytest.skip(f"{distribution.name} needs torch, and is not installed")


def require_importable(distribution: Distribution) -> None:
    """Skip the test of a distribution that needs torch where that is not installed: it takes gigabytes, so
    only the session of its own tests installs it."""
    if "torch" in distribution.needs and importlib.util.find_spec("torch") is None:
        pytest.skip(f"{distribution.name} needs torch, which is not installed")


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


@pytest.fixture(scope="session")
def root():
    return ROOT


def skip_unless_usable(text):
    target = Target.parse(text)
    probe = registry.backend(target.backend).probe(target)
    if not probe.is_usable:
        pytest.skip(probe.reason)


@pytest.fixture
def emulated():
    """Skips the test where kernels of `llvm-sve` cannot be emulated."""
    skip_unless_usable("llvm-sve")


@pytest.fixture(params=list(EMULATED_LENGTHS))
def emulated_backend(request):
    """A backend for scalable vectors; skips the test where its kernels cannot be emulated."""
    skip_unless_usable(request.param)
    return request.param


@pytest.fixture
def all_emulated():
    """Skips the test where kernels of a backend for scalable vectors cannot be emulated."""
    for backend in EMULATED_LENGTHS:
        skip_unless_usable(backend)


@pytest.fixture(params=TARGETS)
def emulated_target(request):
    """A target with vectors of one length; skips the test where its kernels cannot be emulated."""
    skip_unless_usable(request.param)
    return request.param


@pytest.fixture
def require_shown_within(request):
    """Require that an item with a known number reveals a defect. `--update-golden` finds the number: the
    known one if it still does, otherwise the first of so many items that does."""
    name = f"{request.path.stem}[{request.node.callspec.id}]"

    def required(most: int, shows: Callable[[int], bool]) -> None:
        shown = json.loads(SHOWN.read_text()).get(name)
        if shown is not None and shows(shown):
            return
        if not request.config.getoption("--update-golden", default=False):
            pytest.fail(
                f"item {shown} does not reveal the defect (any more); this command searches the first "
                f"{most} items, and stores the number:\n{SEARCH} '{request.node.nodeid}'",
                pytrace=False,
            )
        first = next(filter(shows, range(most)), None)
        assert first is not None, f"none of {most} items reveals the defect"
        numbers = {**json.loads(SHOWN.read_text()), name: first}
        SHOWN.write_text(json.dumps(dict(sorted(numbers.items())), indent=1) + "\n")

    return required


@pytest.fixture(scope="module")
def gpu():
    """A GPU behind the library of a driver, for all tests of a module: kernels that the process keeps are
    loaded there. The interpreter of PTX runs them."""
    from fake_drivers import installed_drivers

    with pytest.MonkeyPatch.context() as monkeypatch, installed_drivers(monkeypatch) as gpu:
        yield gpu
