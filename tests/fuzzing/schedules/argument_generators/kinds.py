"""Argument generators of the primitives that change the kind of a loop."""

from __future__ import annotations

from typing import Any

from gossamer_ir.nodes import Binary, For, Load, Var
from gossamer_ir.traversal.walk import walk
from gossamer_schedule import PRIMITIVES
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.definition.arguments import choices_of
from tests.fuzzing.schedules.argument_generators.scene import (
    ArgumentGenerator,
    Drawn,
    Scene,
    constant_extent,
    loaded,
)

MAX_COPIES = 16
SCALABLE_LANES = (*("native",) * 4, "2 * T.vscale()", "4 * T.vscale()", 4, 8)


def parallel(scene: Scene) -> Drawn:
    loop = scene.choose(scene.serial)
    if loop is None:
        return None
    arguments = {"loop": loop.node.var}
    if scene.chance(0.2):
        return arguments | {"accumulate": "atomic"}
    offsets = _offsets(loop.node)
    if offsets and scene.chance(0.5):
        weight = f"T.int64({scene.rng.choice(offsets)}[{loop.node.var}]) + 2 * {loop.node.var}"
        return arguments | {"weight": weight, "grain": scene.rng.choice((1, 4))}
    return arguments | scene.rng.choice(({}, {"grain": 1}))


def parallel_reduction(scene: Scene) -> Drawn:
    loop = scene.choose(scene.serial)
    if loop is None:
        return None
    form = scene.choice_of("parallel_reduction", "form")
    parts = scene.rng.choice(({}, {"parts": 2}, {"parts": 3}))
    return {"loop": loop.node.var, "form": form, **parts}


def _offsets(loop: For) -> list[str]:
    """The index arrays that give the trip counts of inner loops; they have one element after the last."""
    loops = [node for stmt in loop.body for node in walk(stmt) if isinstance(node, For)]
    inside = [node.extent for node in loops if isinstance(node.extent, Binary)]
    loads = [node for extent in inside for node in walk(extent) if isinstance(node, Load)]
    return [node.buffer for node in loads if node.indices == (Var(loop.var, "int64"),)]


def vectorize(scene: Scene) -> Drawn:
    innermost = [
        site
        for site in scene.serial
        if not any(isinstance(node, For) for stmt in site.node.body for node in walk(stmt))
    ]
    if scene.is_scalable:
        return _scalable(scene, innermost)
    counted = [site for site in innermost if constant_extent(site) is not None]
    loop = scene.choose(counted or innermost)
    remainders = [{"remainder": word} for word in choices_of(PRIMITIVES["vectorize"], "remainder")]
    how = scene.rng.choice(({}, *remainders, {"accumulate": "atomic"}))
    return loop and {"loop": loop.node.var, **how}


def _scalable(scene: Scene, innermost: list[Cursor[Any]]) -> Drawn:
    """Prefers to split a loop into scalable vectors, and masks to remainders."""
    loop = scene.choose(innermost)
    if loop is None:
        return None
    lanes = {"lanes": scene.rng.choice(SCALABLE_LANES)} if scene.chance(0.8) else {}
    return {
        "loop": loop.node.var,
        **lanes,
        **({"remainder": "masked"} if scene.chance(0.6) else {}),
    }


def convert_lanes(scene: Scene) -> Drawn:
    inner = scene.choose([site for site in scene.loops if site.node.kind == "vectorized"])
    outer = inner and scene.choose([loop.var for loop in inner.loops])
    if not inner or not outer:
        return None
    lanes = scene.rng.choice((2, 3, 8, "native", "T.vscale()", "2 * T.vscale()"))
    return {"outer": outer, "loop": inner.node.var, "lanes": lanes}


def unroll(scene: Scene) -> Drawn:
    short = [site for site in scene.serial if (constant_extent(site) or 99) <= MAX_COPIES]
    loop = scene.choose(short)
    return loop and {"loop": loop.node.var}


def bind(scene: Scene) -> Drawn:
    loop = scene.choose(scene.serial)
    if loop is None or not scene.for_threads:
        return None
    return {"loop": loop.node.var, "thread": scene.choice_of("bind", "thread")}


def pipeline(scene: Scene) -> Drawn:
    several = [site for site in scene.serial if len(site.node.body) > 1]
    loop = scene.choose(several or scene.serial)
    return loop and {"loop": loop.node.var, **scene.rng.choice(({}, {"stages": 3}))}


def prefetch(scene: Scene) -> Drawn:
    site = scene.choose([site for site in scene.blocks if site.loops and loaded(site.node)])
    if site is None or scene.module.stage != "loop":
        return None
    return {
        "block": site.node.name,
        "buffer": scene.rng.choice(sorted(loaded(site.node))),
        "loop": scene.rng.choice(site.loops).var,
        "distance": scene.rng.choice((1, 4)),
    }


GENERATORS: dict[str, ArgumentGenerator] = {
    primitive.__name__: primitive
    for primitive in (
        *(parallel, parallel_reduction, vectorize, convert_lanes),
        *(unroll, bind, pipeline, prefetch),
    )
}
