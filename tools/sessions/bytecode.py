"""Compiled modules that environments of sessions share.

Python takes a compiled module for each file with the size and the time that it names. The files of
requirements are hard links to the cache of uv, so they have the same time in all environments; those of this
repository are given one. So a module is compiled once and not in each session.
"""

from __future__ import annotations

import os
import secrets
import struct
from pathlib import Path

import nox

from tools import ROOT
from tools.sessions.distributions import ALL_DISTRIBUTIONS

SHARED = ROOT / ".nox" / "bytecode"


def share_bytecode(session: nox.Session) -> None:
    """Keep what was compiled in the environment of a session, and give it what others have compiled."""
    for site in Path(session.virtualenv.location).glob("lib/python*/site-packages"):
        for distribution in ALL_DISTRIBUTIONS:
            # The time stands for the contents: two builds may have files of one size.
            time = int(distribution.digest()[:7], 16)
            for module in (site / distribution.package).rglob("*.py"):
                os.utime(module, (time, time))
        copy_current(site, SHARED, site)
        copy_current(SHARED, site, site)


def copy_current(source: Path, destination: Path, modules: Path) -> None:
    """Link the compiled modules of a folder, at the same places in another one, if they are current for the
    modules of a third, and the other one has none that is."""
    for compiled in source.rglob("*.pyc"):
        place = compiled.relative_to(source)
        module = modules / place.parent.parent / f"{place.name.partition('.')[0]}.py"
        target = destination / place
        if is_current(compiled, module) and not is_current(target, module):
            target.parent.mkdir(parents=True, exist_ok=True)
            link = target.with_suffix(f".{secrets.token_hex(8)}")  # other sessions do the same
            os.link(compiled, link)
            link.replace(target)


def is_current(compiled: Path, module: Path) -> bool:
    """Return whether a compiled module is there, and is that of a file.

    Its header is a magic number, flags, and the time and size of the file.
    """
    try:
        status = module.stat()
        with compiled.open("rb") as file:
            _, flags, time, size = struct.unpack("<4I", file.read(16))
    except (OSError, struct.error):
        return False
    return (flags, time, size) == (0, int(status.st_mtime) & 0xFFFFFFFF, status.st_size)
