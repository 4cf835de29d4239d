"""Argument generators of the primitives that make several loops or versions of one."""

from __future__ import annotations

from gossamer_ir.core.build import integer_value
from gossamer_ir.nodes import Block, For, IfThenElse, Select, Store
from gossamer_schedule.safe_accesses.expression_arguments import index_vars_at
from tests.fuzzing.schedules.argument_generators.scene import ArgumentGenerator, Drawn, Scene

POINTS = (
    (1,), (2,), (3,), (0, 2), (1, 2), (0,), (2**62,), ("n // 4 * 4",), ("n // 2",), ("n - 1",), (2, "n"),
)  # fmt: skip
MAX_COPIES = 3
"""The maximum number of copies per step; it is small because repeated copying multiplies loops."""


def add_unit_loop(scene: Scene) -> Drawn:
    site = scene.choose([*scene.loops, *scene.blocks])
    if site is None or scene.count("add_unit_loop") >= MAX_COPIES:
        return None
    return {"name": site.node.var if isinstance(site.node, For) else site.node.name}


def loop_partition(scene: Scene) -> Drawn:
    loop = scene.choose(scene.serial)
    if loop is None or _copies(scene) >= MAX_COPIES:
        return None
    size = scene.choose([*_sizes(scene), *(loop_above.var for loop_above in loop.loops_in_block)])
    points = scene.rng.choice(POINTS)
    if size is None:
        points = tuple(point for point in points if isinstance(point, int)) or (1,)
    named = (point if isinstance(point, int) else point.replace("n", str(size)) for point in points)
    return {"loop": loop.node.var, "points": tuple(named)}


def fission(scene: Scene) -> Drawn:
    loop = scene.choose([site for site in scene.serial if len(site.node.body) > 1])
    return loop and {"loop": loop.node.var}


def horizontal_fuse(scene: Scene) -> Drawn:
    """Parallel loops of one body, one after the other; loops with one iteration may be around them."""
    conditions: dict[tuple[int, str], dict[int, str]] = {}
    for site in scene.loops:
        if site.node.kind == "parallel":
            nest = site
            while nest.loops and len(nest.body) == 1 and integer_value(nest.loops[-1].extent) == 1:
                nest = nest.up(1)
            step = nest.path[-1]
            conditions.setdefault((id(step.parent), step.field), {})[step.index] = site.node.var
    runs = [
        (places[at], places[at + 1])
        for places in conditions.values()
        for at in places
        if at + 1 in places
    ]
    chosen = scene.choose(runs)
    return chosen and {"loops": chosen}


def loop_version(scene: Scene) -> Drawn:
    site = scene.choose([*scene.loops, *scene.blocks])
    if site is None or _copies(scene) >= MAX_COPIES:
        return None
    name = site.node.var if isinstance(site.node, For) else site.node.name
    size = scene.choose([*_sizes(scene), *index_vars_at(site)])
    if size is None:
        return None
    condition = scene.rng.choice(("{} == 2", "{} == 1", "{} < 2", "{} % 2 == 0", "2 <= {}"))
    return {"name": name, "condition": condition.format(size)}


def decompose_padding(scene: Scene) -> Drawn:
    site = scene.choose([site for site in scene.blocks if site.loops and _pads(site.node)])
    return site and {"block": site.node.name, "loop": scene.rng.choice(site.loops).var}


def _pads(block: Block) -> bool:
    return any(
        isinstance(stmt, Store) and isinstance(stmt.value, (IfThenElse, Select))
        for stmt in block.body
    )


def _copies(scene: Scene) -> int:
    return scene.count("loop_partition") + scene.count("loop_version")


def _sizes(scene: Scene) -> list[str]:
    return [param.name for param in scene.function.params if param.dtype == "int64"]


GENERATORS: dict[str, ArgumentGenerator] = {
    primitive.__name__: primitive
    for primitive in (
        add_unit_loop,
        loop_partition,
        fission,
        horizontal_fuse,
        loop_version,
        decompose_padding,
    )
}
