"""Versions and entry points read from `dist-info` folders, compared with `importlib.metadata`."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from importlib import metadata
from importlib.machinery import PathFinder

import pytest

from gossamer_support.plugins.installed_distributions import (
    EntryPoint,
    entry_points,
    installed_distribution,
    installed_entry_points,
)

ENTRY_POINTS = "[acme.group]\nfast = acme_fast:module\n"
METADATA = "Metadata-Version: 2.1\nName: Acme.Fast\nVersion: 1.0\n"


@pytest.mark.parametrize("name", ["gossamer-support", "msgspec", "numpy", "pytest"])
def test_version_is_that_of_the_standard_library(name):
    distribution = installed_distribution(name)
    assert distribution is not None
    assert distribution.version == metadata.version(name)


@pytest.mark.parametrize(("name", "group"), [("pytest", "console_scripts"), ("numpy", "array_api")])
def test_entry_points_are_those_of_the_standard_library(name, group):
    distribution = installed_distribution(name)
    wanted = {item.name: item.value for item in metadata.distribution(name).entry_points
              if item.group == group}  # fmt: skip
    assert distribution is not None
    assert wanted
    assert entry_points(distribution, group=group) == wanted


def test_the_first_of_the_path_wins_and_names_are_normalized(tmp_path, monkeypatch):
    for place, version in (("first", "2.0"), ("second", "1.0")):
        (tmp_path / place / f"My.Own_Thing-{version}.dist-info").mkdir(parents=True)
    monkeypatch.setattr(sys, "path", [str(tmp_path / "first"), str(tmp_path / "second")])
    distribution = installed_distribution("my-own-thing")
    assert distribution is not None
    assert (distribution.version, distribution.read("METADATA")) == ("2.0", None)
    (tmp_path / "first" / "other-3.dist-info").mkdir()
    assert installed_distribution("other") is not None


def test_missing_and_unreadable_places_hold_nothing(tmp_path, monkeypatch):
    file = tmp_path / "archive.zip"
    file.touch()
    monkeypatch.setattr(sys, "path", [str(file), str(tmp_path / "no such folder")])
    assert installed_distribution("gossamer-support") is None


def as_folder(place, suffix, file):
    folder = place / f"Acme.Fast-1.0{suffix}"
    folder.mkdir()
    (folder / file).write_text(METADATA)
    (folder / "entry_points.txt").write_text(ENTRY_POINTS)
    return place


def as_archive(place, name, folder, file):
    archive = place / name
    with zipfile.ZipFile(archive, "w") as written:
        written.writestr(f"{folder}/{file}", METADATA)
        written.writestr(f"{folder}/entry_points.txt", ENTRY_POINTS)
    return archive


def as_egg(place):
    egg = place / "acme.egg"
    (egg / "EGG-INFO").mkdir(parents=True)
    (egg / "EGG-INFO" / "PKG-INFO").write_text(METADATA)
    (egg / "EGG-INFO" / "entry_points.txt").write_text(ENTRY_POINTS)
    return egg


INSTALLATIONS = {
    "dist-info": lambda place: as_folder(place, ".dist-info", "METADATA"),
    "egg-info": lambda place: as_folder(place, ".egg-info", "PKG-INFO"),
    "egg": as_egg,
    "zipped egg": lambda place: as_archive(place, "acme.egg", "EGG-INFO", "PKG-INFO"),
    "zip": lambda place: as_archive(place, "acme.zip", "Acme.Fast-1.0.dist-info", "METADATA"),
}


@pytest.mark.parametrize("install", INSTALLATIONS.values(), ids=INSTALLATIONS)
def test_entry_points_are_found_however_their_distribution_is_installed(
    install, tmp_path, monkeypatch
):
    monkeypatch.setattr(sys, "path", [str(install(tmp_path))])
    assert installed_entry_points("acme.group") == (
        EntryPoint("fast", "acme_fast:module", "acme-fast"),
    )
    assert installed_entry_points("another.group") == ()


def test_entry_points_of_other_finders_are_found(tmp_path, monkeypatch):
    class Finder:
        @staticmethod
        def find_spec(*_arguments):
            return None

        @staticmethod
        def find_distributions(context):
            del context
            return PathFinder.find_distributions(metadata.DistributionFinder.Context(path=[place]))

    place = str(as_folder(tmp_path, ".dist-info", "METADATA"))
    assert installed_entry_points("acme.group") == ()
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Finder])
    assert [point.name for point in installed_entry_points("acme.group")] == ["fast"]


def test_old_distributions_without_entry_points_are_not_searched_slowly(tmp_path, monkeypatch):
    (tmp_path / "old-1.0.egg-info").mkdir()
    (tmp_path / "older-1.0.egg-info").touch()
    as_folder(tmp_path, ".dist-info", "METADATA")
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.setattr(metadata, "entry_points", None)
    assert [point.name for point in installed_entry_points("acme.group")] == ["fast"]


def test_looking_for_plugins_imports_no_slow_parsers():
    program = (
        "import sys; from gossamer_support.plugins import installed_distributions as installed; "
        "installed.installed_distribution('gossamer-ir'); installed.installed_entry_points('acme');"
        "print([name for name in ('importlib.metadata', 'email', 'zipfile') if name in sys.modules])"
    )
    process = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path = {sys.path!r}; {program}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert process.stdout.strip() == "[]"
