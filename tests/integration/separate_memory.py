"""The installation of the plugin of `tests/plugins/separate` for a test."""

from __future__ import annotations

import importlib
import tomllib
from pathlib import Path

import pytest

from gossamer.compilation.build_kernels import KERNELS
from gossamer.targets import resolve_target
from gossamer_backend import Registry

FOLDER = Path(__file__).resolve().parents[1] / "plugins/separate"


def install_separate_memory(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let gossamer find the plugin by its entry point, in an empty folder."""
    project = tomllib.loads((FOLDER / "pyproject.toml").read_text())["project"]
    info = folder / "acme_separate-1.0.dist-info"
    info.mkdir()
    name, version = project["name"], project["version"]
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    ((backend, module),) = project["entry-points"]["gossamer.plugins"].items()
    (info / "entry_points.txt").write_text(f"[gossamer.plugins]\n{backend} = {module}\n")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("GOSSAMER_CACHE_DIR", str(folder / "cache"))
    monkeypatch.setattr(resolve_target, "registry", Registry())
    KERNELS.forget()
    importlib.invalidate_caches()
