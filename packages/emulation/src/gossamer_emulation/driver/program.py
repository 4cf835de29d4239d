"""The program as an executable file, which the cross compiler makes once, and what this needs."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from gossamer_backend.plugin_api import Artifact, ArtifactCache
from gossamer_emulation.emulated_machine import Architecture
from gossamer_ir.errors import InternalError
from gossamer_ir.interchange.records import Signature
from gossamer_support.typed_calls import typed

_FLAGS = ("-std=c11", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra", "-Werror", "-static")
_EMULATOR_PACKAGE = "qemu-user-static"
"""The package of Debian that has the emulators of all architectures."""
_SOURCES = Path(__file__).parent


@typed
def reason_against_emulation(architecture: Architecture) -> str | None:
    """Return a sentence on the programs that this machine lacks, None if it can emulate kernels.

    >>> from gossamer_emulation import RISCV64
    >>> reason = reason_against_emulation(RISCV64._replace(emulator="qemu-of-nothing"))
    >>> "qemu-of-nothing" in reason
    True
    """
    packages = {
        architecture.emulator: _EMULATOR_PACKAGE,
        architecture.compiler: architecture.compiler_packages,
    }
    missing = [name for name in packages if shutil.which(name) is None]
    # The compiler is not needed once it has made the driver.
    if missing == [architecture.compiler] and _cached_driver(architecture) is not None:
        return None
    if not missing:
        return None
    wanted = " ".join(packages[name] for name in missing)
    return (
        f"Emulation needs {' and '.join(missing)}, not found on the path; "
        f"the packages of Debian are {wanted}."
    )


def driver(architecture: Architecture) -> bytes:
    """Return the driver as an executable file, from the kernel cache if it is there."""
    artifact = _cached_driver(architecture)
    if artifact is None:
        no_signature = Signature("", (), (), ())
        artifact = Artifact(
            "emulation", "", architecture.name, no_signature, _compile(architecture)
        )
        ArtifactCache().put(_key(architecture), artifact)
    return artifact.code


def _cached_driver(architecture: Architecture) -> Artifact | None:
    return ArtifactCache().get(_key(architecture))


def _files(architecture: Architecture) -> tuple[Path, ...]:
    """Return the files of the driver that the compiler is given."""
    architecture_sources = (f"{part}_{architecture.name}.c" for part in ("relocations", "detours"))
    return tuple(
        _SOURCES / name for name in ("main.c", "call.c", "object_file.c", *architecture_sources)
    )


@cache
def _key(architecture: Architecture) -> str:
    digest = hashlib.sha256(" ".join((architecture.compiler, *_FLAGS)).encode())
    for path in (*_files(architecture), *sorted(_SOURCES.glob("*.h"))):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _compile(architecture: Architecture) -> bytes:
    with tempfile.TemporaryDirectory() as directory:
        executable = Path(directory) / "driver"
        command = [architecture.compiler, *_FLAGS, *map(str, _files(architecture))]
        done = subprocess.run(
            [*command, "-o", str(executable)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        if done.returncode:
            message = done.stderr.decode(errors="replace").strip()
            raise InternalError(
                f"'{architecture.compiler}' cannot compile the driver of the emulator: {message}"
            )
        return executable.read_bytes()
