"""Random arguments of primitives: one generator of arguments for each primitive, one file for each group.

A primitive needs a generator of its own if its signature says too little (`from_signature`), or if arguments
that are drawn from it rarely fit.
"""

from __future__ import annotations

from gossamer_schedule import PRIMITIVES
from tests.fuzzing.schedules.argument_generators import (
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
from tests.fuzzing.schedules.argument_generators.from_signature import generator_from_signature
from tests.fuzzing.schedules.argument_generators.scene import ArgumentGenerator, Scene

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
OWN: dict[str, ArgumentGenerator] = {
    name: generator for group in GROUPS for name, generator in group.GENERATORS.items()
}
DERIVED: dict[str, ArgumentGenerator] = {
    name: generator
    for name in PRIMITIVES
    if name not in OWN
    and not name.startswith("unsafe_")
    and (generator := generator_from_signature(name)) is not None
}
GENERATORS = OWN | DERIVED
"""A generator for each primitive by name, except those without a proof of legality."""

NOT_DRAWN = {
    "decompose_format": "The program takes other arrays than before. The module "
    "tests/fuzzing/programs/decomposed.py draws the step, and converts the arrays.",
}
"""Primitives without a generator, with the reasons."""

INTRINSICS = intrinsics.INTRINSICS
"""The intrinsics for which steps are drawn."""

__all__ = ["GENERATORS", "INTRINSICS", "NOT_DRAWN", "ArgumentGenerator", "Scene"]
