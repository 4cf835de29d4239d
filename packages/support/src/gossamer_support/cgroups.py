"""The cgroups of this process, whose limits bound the memory (formats) and the CPUs (backend) it may use."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import msgspec

PROC, CGROUPS = Path("/proc"), Path("/sys/fs/cgroup")


class ControlGroup(msgspec.Struct, frozen=True):
    """The directory of a cgroup, and whether it is of version 2."""

    path: Path
    is_v2: bool


def control_groups(
    controller: str, *, proc: Path = PROC, cgroups: Path = CGROUPS
) -> Iterator[ControlGroup]:
    """Yield the cgroups with a controller that this process is in, and all their ancestors: limits of those
    apply as well. Nothing where the system has none.

    Source: cgroups(7).

    >>> list(control_groups("cpu", proc=Path("/nowhere")))
    []
    """
    for line in read_text(proc / "self" / "cgroup").splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        is_v2 = number == "0" and not controllers
        if is_v2:
            root = cgroups
        elif controller in controllers.split(","):
            root = next(
                (cgroups / name for name in (controllers, controller) if (cgroups / name).is_dir()),
                cgroups / controller,
            )
        else:
            continue
        # In a container, the path may be that of the host; only the root is then mounted.
        parts = [part for part in PurePosixPath(path).parts if part not in ("/", "..")]
        for depth in range(len(parts) + 1):
            yield ControlGroup(root.joinpath(*parts[:depth]), is_v2)


def read_text(path: Path) -> str:
    """Return the text of a file of the kernel; "" if it is missing or cannot be read."""
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""
