"""NVIDIA's assembler, if this machine has it."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import tempfile
from pathlib import Path

import msgspec

PTXAS_SECONDS = 120
"""A kernel takes a fraction of a second; the limit is for a program that waits."""


class Assembled(msgspec.Struct, frozen=True):
    """The machine code of a module, or why there is none."""

    cubin: bytes | None
    reason: str | None = None


def ptxas_path() -> str | None:
    """Return the path of `ptxas`: that of the package `nvidia-cuda-nvcc`, or one of a toolkit.

    >>> ptxas_path() is None or ptxas_path().endswith("ptxas")
    True
    """
    package = importlib.util.find_spec("nvidia")
    roots = (package.submodule_search_locations or ()) if package else ()
    paths = (path for root in roots for path in Path(root).rglob("bin/ptxas"))
    return next(map(str, paths), shutil.which("ptxas"))


def assemble_ptx(ptx: str, architecture: str, *, has_line_info: bool = False) -> Assembled:
    """Return the machine code of PTX for an architecture, with the lines that the PTX names if it has such
    information."""
    program = ptxas_path()
    if program is None:
        return Assembled(None, "no ptxas was found")
    with tempfile.TemporaryDirectory() as folder:
        source, cubin = Path(folder, "kernel.ptx"), Path(folder, "kernel.cubin")
        source.write_text(ptx)
        options = ["-lineinfo"] if has_line_info else []
        command = [program, "-arch", architecture, *options, "-o", str(cubin), str(source)]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=PTXAS_SECONDS, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return Assembled(None, f"ptxas failed: {error}")
        if done.returncode:
            lines = done.stderr.strip().splitlines()
            return Assembled(None, f"ptxas failed: {lines[-1] if lines else done.returncode}")
        return Assembled(cubin.read_bytes())
