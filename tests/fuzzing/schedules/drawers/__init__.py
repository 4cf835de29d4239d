"""Random arguments of primitives: one drawer for each primitive, one file for each group.

A primitive needs a drawer of its own if its signature says too little (`from_signature`), or if arguments
that are drawn from it rarely fit.
"""

from __future__ import annotations

from gossamer_schedule import PRIMITIVES
from tests.fuzzing.schedules.drawers import (
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
from tests.fuzzing.schedules.drawers.from_signature import drawer_from_signature
from tests.fuzzing.schedules.drawers.scene import Drawer, Scene

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
OWN: dict[str, Drawer] = {
    name: drawer for group in GROUPS for name, drawer in group.DRAWERS.items()
}
DERIVED: dict[str, Drawer] = {
    name: drawer
    for name in PRIMITIVES
    if name not in OWN
    and not name.startswith("unsafe_")
    and (drawer := drawer_from_signature(name)) is not None
}
DRAWERS = OWN | DERIVED
"""A drawer for each primitive by name, except those without a proof of legality."""

NOT_DRAWN = {
    "decompose_format": "The program takes other arrays than before. The module "
    "tests/fuzzing/programs/decomposed.py draws the step, and converts the arrays.",
}
"""Primitives without a drawer, with the reasons."""

INTRINSICS = intrinsics.INTRINSICS
"""The intrinsics for which steps are drawn."""

__all__ = ["DRAWERS", "INTRINSICS", "NOT_DRAWN", "Drawer", "Scene"]
