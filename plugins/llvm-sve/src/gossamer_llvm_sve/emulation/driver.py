"""The program of the emulated process (`driver.c`), which the cross compiler makes once, and the emulator."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from gossamer_backend.plugin_api import Artifact, ArtifactCache
from gossamer_ir.errors import InternalError
from gossamer_ir.interchange.records import Signature

EMULATOR = "qemu-aarch64-static"
_COMPILER = "aarch64-linux-gnu-gcc"
_FLAGS = ("-std=c11", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra", "-Werror", "-static")

_PACKAGES = {EMULATOR: "qemu-user-static", _COMPILER: "gcc-aarch64-linux-gnu libc6-dev-arm64-cross"}
"""The packages of Debian that have the programs."""


def reason_against_emulation() -> str | None:
    """Return a sentence on the programs that this machine lacks, None if it can emulate kernels."""
    missing = [name for name in _PACKAGES if shutil.which(name) is None]
    # The compiler is not needed once it has made the driver.
    if missing == [_COMPILER] and _cached_driver() is not None:
        return None
    if not missing:
        return None
    packages = " ".join(_PACKAGES[name] for name in missing)
    return (
        f"Emulation needs {' and '.join(missing)}, not found on the path; "
        f"the packages of Debian are {packages}."
    )


def driver() -> bytes:
    """Return the driver as an executable file, from the kernel cache if it is there."""
    artifact = _cached_driver()
    if artifact is None:
        artifact = Artifact("llvm-sve", "", "llvm-sve", Signature("", (), (), ()), _compiled())
        ArtifactCache().put(_key(), artifact)
    return artifact.code


def _cached_driver() -> Artifact | None:
    return ArtifactCache().get(_key())


@cache
def _source() -> bytes:
    return Path(__file__).with_name("driver.c").read_bytes()


@cache
def _key() -> str:
    return hashlib.sha256(" ".join((_COMPILER, *_FLAGS)).encode() + _source()).hexdigest()


def _compiled() -> bytes:
    with tempfile.TemporaryDirectory() as directory:
        executable = Path(directory) / "driver"
        command = [_COMPILER, *_FLAGS, "-x", "c", "-", "-o", str(executable)]
        done = subprocess.run(command, input=_source(), capture_output=True, check=False)
        if done.returncode:
            message = done.stderr.decode(errors="replace").strip()
            raise InternalError(
                f"'{_COMPILER}' cannot compile the driver of the emulator: {message}"
            )
        return executable.read_bytes()
