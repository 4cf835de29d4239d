"""Argument generators of the primitives that move a block to its consumer or its producer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gossamer_ir.nodes import Allocate, For
from gossamer_schedule.cursor.cursor_at import Cursor
from tests.fuzzing.schedules.argument_generators.scene import (
    ArgumentGenerator,
    Drawn,
    Scene,
    stored,
)


def compute_at(scene: Scene) -> Drawn:
    return _drawn_place(scene, "compute_at") or _moved(scene, scene.makers)


def reverse_compute_at(scene: Scene) -> Drawn:
    drawn = _drawn_place(scene, "reverse_compute_at")
    return drawn or _moved(scene, scene.users or scene.blocks)


def _moved(scene: Scene, blocks: Sequence[Cursor[Any]]) -> Drawn:
    site = scene.choose(blocks)
    loop = site and scene.loop_around(scene.others(site))
    return loop and {"block": site.node.name, "loop": loop}


def sample_compute_location(scene: Scene) -> Drawn:
    move = scene.choice_of("sample_compute_location", "move")
    site = scene.choose(scene.makers if move == "compute_at" else scene.users)
    if site is None:
        return None
    name, seed = f"place{len(scene.trace)}", scene.rng.randrange(100)
    return {"block": site.node.name, "name": name, "move": move, "seed": seed}


def _drawn_place(scene: Scene, move: str) -> Drawn:
    """The move to the place that was sampled last, if it was sampled for this move."""
    drawn = [step.args for step in scene.trace[-2:] if step.op == "sample_compute_location"]
    if not drawn or drawn[-1].get("move", "compute_at") != move:
        return None
    return {"block": drawn[-1]["block"], "loop": f"${drawn[-1]['name']}"}


def rolling_buffer(scene: Scene) -> Drawn:
    inside = {
        site.node.buffer.name for site in scene.of(Allocate) if isinstance(site.parents[-1], For)
    }
    pairs = [
        (site.node.name, name)
        for site in scene.makers
        for name in stored(site.node)
        if name in inside
    ]
    choice = scene.choose(pairs)
    return choice and {"block": choice[0], "buffer": choice[1]}


def compute_inline(scene: Scene) -> Drawn:
    site = scene.choose([site for site in scene.makers if not site.node.init])
    return site and {"block": site.node.name}


def reverse_compute_inline(scene: Scene) -> Drawn:
    site = scene.choose([site for site in scene.users if not site.node.init])
    return site and {"block": site.node.name}


GENERATORS: dict[str, ArgumentGenerator] = {
    primitive.__name__: primitive
    for primitive in (
        compute_at, reverse_compute_at, sample_compute_location, compute_inline,
        reverse_compute_inline, rolling_buffer,
    )
}  # fmt: skip
