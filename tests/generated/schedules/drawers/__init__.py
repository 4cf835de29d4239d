"""Random arguments of primitives: one drawer for each primitive, one file for each group."""

from __future__ import annotations

from tests.generated.schedules.drawers import (
    caches,
    intrinsics,
    iterations,
    kinds,
    loops,
    moves,
    notes,
    partitions,
    reductions,
    storage,
)
from tests.generated.schedules.drawers.scene import Drawer, Scene

GROUPS = (
    loops,
    partitions,
    kinds,
    caches,
    moves,
    reductions,
    storage,
    intrinsics,
    iterations,
    notes,
)
DRAWERS: dict[str, Drawer] = {
    name: drawer for group in GROUPS for name, drawer in group.DRAWERS.items()
}
"""A drawer for each primitive by name."""

INTRINSICS = intrinsics.INTRINSICS
"""The intrinsics for which steps are drawn."""

__all__ = ["DRAWERS", "INTRINSICS", "Drawer", "Scene"]
