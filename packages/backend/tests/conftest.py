import ctypes
import importlib
import sys
from pathlib import Path

import pytest

from gossamer_backend import Artifact, NativeKernel, Registry
from gossamer_backend.call.abi import prototype

PLUGINS = Path(__file__).parent / "plugins"
BROKEN = (
    "old-api",
    "new-api",
    "fractional-api",
    "list-of-capabilities",
    "raising-probe",
    "incomplete",
    "other-name",
    "unusable",
    "no-hook",
    "misspelled-hook",
    "other-primitive",
    "raising-hook",
    "same-primitive",
)
MODULES = ("gossamer_tiny", "gossamer_broken", "gossamer_raising", "gossamer_exiting")


def write_distribution(directory, name, entry_points):
    info = directory / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = [f"{key} = {value}" for key, value in entry_points]
    (info / "entry_points.txt").write_text("[gossamer.plugins]\n" + "\n".join(lines) + "\n")


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Makes distributions with entry points visible to this process: install(name, pairs)."""
    directory = tmp_path / "site"
    directory.mkdir()
    monkeypatch.syspath_prepend(str(directory))
    monkeypatch.syspath_prepend(str(PLUGINS))
    for name in MODULES:
        monkeypatch.delitem(sys.modules, name, raising=False)

    def add(name, entry_points):
        write_distribution(directory, name, entry_points)
        importlib.invalidate_caches()

    yield add
    for name in MODULES:
        sys.modules.pop(name, None)


@pytest.fixture
def broken_plugins(install):
    """The broken plugins, and a working one."""
    pairs = [(name, f"gossamer_broken:{name.replace('-', '_')}") for name in BROKEN]
    install("broken-ones", [*pairs, ("clash", "gossamer_broken:clash")])
    install("another-clash", [("clash", "gossamer_broken:clash")])
    install("cannot-import", [("raising", "gossamer_raising"), ("exiting", "gossamer_exiting")])
    install("not-there", [("not-there", "gossamer_no_such_module:plugin")])
    install("gossamer-tiny", [("tiny-interpreter", "gossamer_tiny")])
    return Registry()


@pytest.fixture
def tiny(install):
    """The backend `tiny-interpreter`, loaded by the registry."""
    install("gossamer-tiny", [("tiny-interpreter", "gossamer_tiny")])
    return Registry().backend("tiny-interpreter")


@pytest.fixture
def make_kernel():
    """make_kernel(signature, function, bounds_checked_buffers) returns a kernel whose machine code calls the
    function with the values of the parameters and the workspace."""

    def make(signature, function, *, bounds_checked_buffers=(), **options):
        entry = prototype(signature)(lambda *values: function(*values[:-1], values[-1].contents))
        artifact = Artifact("toy", "1.0", "toy", signature, b"", bounds_checked_buffers)
        address = ctypes.cast(entry, ctypes.c_void_p).value
        return NativeKernel(artifact, address, keep_alive=(entry,), **options)

    return make


@pytest.fixture
def no_linker(monkeypatch, tmp_path):
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
