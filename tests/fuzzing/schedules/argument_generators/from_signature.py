"""Argument generators that follow from the signatures of primitives, for those without one of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gossamer_schedule import PRIMITIVES
from gossamer_schedule.cursor.cursor_at import name_of
from gossamer_schedule.definition.arguments import argument_types
from tests.fuzzing.schedules.argument_generators.scene import ArgumentGenerator, Drawn, Scene

SCOPES = ("global", "local")

CHOICES: Mapping[str, Callable[[Scene], Any]] = {
    "loop": lambda scene: scene.choose([site.node.var for site in scene.serial]),
    "block": lambda scene: scene.choose([site.node.name for site in scene.blocks]),
    "iteration": lambda scene: scene.choose([site.node.name for site in scene.iterations]),
    "name": lambda scene: scene.choose([*filter(None, (name_of(s.node) for s in scene.sites))]),
    "buffer": lambda scene: scene.choose([*scene.buffers]),
    "scope": lambda scene: scene.rng.choice(SCOPES),
}
"""The generator for an argument of each name."""


def generator_from_signature(op: str) -> ArgumentGenerator | None:
    """The generator of the required arguments; None if one of them has no entry in `CHOICES`."""
    _, required = argument_types(PRIMITIVES[op])
    if not CHOICES.keys() >= {*required}:
        return None

    def draw(scene: Scene) -> Drawn:
        drawn = {name: CHOICES[name](scene) for name in required}
        return None if None in drawn.values() else drawn

    return draw
