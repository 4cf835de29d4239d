"""Link an object file to a shared library, with a compiler or linker of this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from gossamer_backend.elf_records import FILE_HEADER, IDENTITY, header_of

COMMANDS = (
    ("cc", ("-shared", "-Wl,-soname,{name}")),
    ("gcc", ("-shared", "-Wl,-soname,{name}")),
    ("clang", ("-shared", "-Wl,-soname,{name}")),
    ("ld", ("-shared", "-soname", "{name}")),
    ("ld.lld", ("-shared", "-soname", "{name}")),
)
"""Commands in the order in which they are tried. Compilers come first: they find their C library."""

_CROSS_COMPILERS = {183: "aarch64-linux-gnu-gcc", 243: "riscv64-linux-gnu-gcc"}
"""Compilers for objects of other machines, by the machine in the header of ELF. They are tried last."""

# A link takes a fraction of a second. The limit is for a compiler wrapper that waits for input or a server.
LINK_TIMEOUT_SECONDS = 60


def link_shared(object_file: Path, library: Path) -> str | None:
    """Link one object file to a shared library in the same directory. Return why that failed, or None."""
    reason = f"no linker was found ({', '.join(program for program, _ in COMMANDS)})"
    for program, options in (*COMMANDS, *_cross_commands(object_file)):
        path = shutil.which(program)
        if path is None:
            continue
        named = [option.format(name=library.name) for option in options]
        failure = _link_failure([path, *named, "-o", str(library), str(object_file)])
        if failure is None and library.is_file():
            return None
        # A failed linker may leave a part of the library.
        library.unlink(missing_ok=True)
        reason = f"{program} failed: {failure or 'it wrote nothing'}"
    return reason


def _cross_commands(object_file: Path) -> tuple[tuple[str, tuple[str, ...]], ...]:
    code = object_file.read_bytes()
    is_elf = code.startswith(IDENTITY) and len(code) >= FILE_HEADER.size
    compiler = _CROSS_COMPILERS.get(header_of(code).machine) if is_elf else None
    return () if compiler is None else ((compiler, COMMANDS[0][1]),)


def _link_failure(command: list[str]) -> str | None:
    """Run a command; return None, or the last line of its error output."""
    environment = {**os.environ, "LC_ALL": "C"}
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            env=environment,
            timeout=LINK_TIMEOUT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode == 0:
        return None
    lines = done.stderr.strip().splitlines()
    return lines[-1] if lines else f"exit code {done.returncode}"
