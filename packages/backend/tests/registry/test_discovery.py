"""Versions and entry points read from `dist-info` folders, compared with `importlib.metadata`."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata

import pytest

from gossamer_backend.registry.discovery import entry_points, installed_distribution


@pytest.mark.parametrize("name", ["gossamer-ir", "gossamer-backend", "msgspec", "numpy", "pytest"])
def test_version_is_that_of_the_standard_library(name):
    found = installed_distribution(name)
    assert found is not None
    assert found.version == metadata.version(name)


@pytest.mark.parametrize(("name", "group"), [("pytest", "console_scripts"), ("numpy", "array_api")])
def test_entry_points_are_those_of_the_standard_library(name, group):
    found = installed_distribution(name)
    wanted = {item.name: item.value for item in metadata.distribution(name).entry_points
              if item.group == group}  # fmt: skip
    assert found is not None
    assert wanted
    assert entry_points(found, group=group) == wanted


def test_the_first_of_the_path_wins_and_names_are_normalized(tmp_path, monkeypatch):
    for place, version in (("first", "2.0"), ("second", "1.0")):
        (tmp_path / place / f"My.Own_Thing-{version}.dist-info").mkdir(parents=True)
    monkeypatch.setattr(sys, "path", [str(tmp_path / "first"), str(tmp_path / "second")])
    found = installed_distribution("my-own-thing")
    assert found is not None
    assert (found.version, found.read("METADATA")) == ("2.0", "")
    (tmp_path / "first" / "other-3.dist-info").mkdir()
    assert installed_distribution("other") is not None


def test_missing_and_unreadable_places_hold_nothing(tmp_path, monkeypatch):
    file = tmp_path / "archive.zip"
    file.touch()
    monkeypatch.setattr(sys, "path", [str(file), str(tmp_path / "no such folder")])
    assert installed_distribution("gossamer-ir") is None


def test_finding_an_own_backend_imports_no_slow_parsers():
    program = (
        "import sys; from gossamer_backend.registry.discovery import installed_distribution; "
        "installed_distribution('gossamer-ir');"
        "print([name for name in ('importlib.metadata', 'email', 'zipfile') if name in sys.modules])"
    )
    found = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path = {sys.path!r}; {program}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.strip() == "[]"
