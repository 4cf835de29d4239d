"""C files, compiled once for this machine into a folder of the user's cache."""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from benchmarks.machine.machine_description import cpu_name

FLAGS = ("-O3", "-march=native", "-fopenmp", "-fPIC")
FAST = "-ffast-math"
"""Allows reassociation, which compilers need to vectorize sums."""

LINK_FLAGS = ("-shared", "-fopenmp")
"""Without `-ffast-math`: with it, GCC links a start-up file that makes the whole process flush denormal
numbers."""

VALUES = {"float32": "float", "float64": "double"}


class CompilerError(Exception):
    """There is no C compiler, or it failed; the message says which."""


@cache
def load_library(folder: Path, dtype: str, *further: str) -> ctypes.CDLL:
    """Compile and load all C files of a folder, with `VALUE` defined as the dtype, and further flags."""
    compiler = find_c_compiler()
    if compiler is None:
        raise CompilerError("there is no C compiler (cc, or what CC names)")
    sources = sorted(folder.glob("*.c"))
    flags = [*FLAGS, *further, f"-DVALUE={VALUES[dtype]}"]
    path = cache_folder() / f"{folder.name}-{digest(sources, [compiler, *flags])}.so"
    if not path.exists():
        build(path, compiler, flags, sources)
    return ctypes.CDLL(str(path))


def find_c_compiler() -> str | None:
    """Return the path of the compiler: `CC`, by default `cc`."""
    return shutil.which(os.environ.get("CC", "cc"))


def build(path: Path, compiler: str, flags: Sequence[str], sources: Sequence[Path]) -> None:
    """Compile and link; the file is renamed into place when it is complete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        run_compiler([compiler, *flags, "-c", *map(str, sources)], folder)
        objects = [f"{source.stem}.o" for source in sources]
        run_compiler([compiler, *LINK_FLAGS, *objects, "-o", "library"], folder)
        Path(folder, "library").replace(path)


def run_compiler(command: Sequence[str], folder: str) -> None:
    """Run the compiler in a folder."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CompilerError(f"the C compiler failed: {done.stderr.strip()[:500]}")


def digest(sources: Sequence[Path], command: Sequence[str]) -> str:
    """Return a hash of everything that the machine code depends on."""
    identity = "\0".join([cpu_name(), compiler_version() or "", *command])
    content = hashlib.sha256(identity.encode())
    for source in sources:
        content.update(source.read_bytes())
    return content.hexdigest()[:16]


@cache
def compiler_version() -> str | None:
    """Return the first line of `--version`."""
    compiler = find_c_compiler()
    if compiler is None:
        return None
    said = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=False)
    return said.stdout.partition("\n")[0]


def cache_folder() -> Path:
    """Return `gossamer-benchmarks` in the user's cache folder."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "gossamer-benchmarks"
