"""Argument generators of the primitives that restructure loops."""

from __future__ import annotations

from gossamer_ir.core.build import integer_value
from gossamer_ir.nodes import Block, For, Load
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.walk import walk
from tests.fuzzing.schedules.argument_generators.scene import ArgumentGenerator, Drawn, Scene

FACTORS = (
    (None, 2), (None, 3), (None, 4), (None, 8), (None, 16), (None, 2, 4), (None, 1), (2, None),
    (2, 8), (2, None, 2), (None, "T.vscale()"),
)  # fmt: skip
SCALABLE_FACTORS = (
    (None, "T.vscale()"), (None, "2 * T.vscale()"), (None, "4 * T.vscale()"), (None, 2, "4 * T.vscale()"),
    (None, "8 * T.vscale()"), ("T.vscale()", None),
)  # fmt: skip
LATER_FACTORS = ((None, 2), (None, 3), (None, 1))
"""Factors of later splits: each rounds the iterations up."""
MAX_SPLITS = 5


def split(scene: Scene) -> Drawn:
    loop, splits = scene.choose(scene.serial), scene.count("split")
    if loop is None or splits >= MAX_SPLITS:
        return None
    tiles = [step for step in scene.trace if step.op == "sample_perfect_tile"]
    if tiles and scene.chance(0.5):
        name, parts = str(tiles[-1].args["name"]), int(tiles[-1].args["parts"])
        factors = tuple(f"${name}_{at}" for at in range(parts))
        return {"loop": tiles[-1].args["loop"], "factors": factors}
    numbers = [step.args["name"] for step in scene.trace if step.op == "sample_categorical"]
    if numbers and scene.chance(0.5):
        return {"loop": loop.node.var, "factors": (None, f"${numbers[-1]}")}
    if scene.is_scalable and scene.chance(0.6):
        return {"loop": loop.node.var, "factors": scene.rng.choice(SCALABLE_FACTORS)}
    return {
        "loop": loop.node.var,
        "factors": scene.rng.choice(FACTORS if splits < 2 else LATER_FACTORS),
    }


def sample_perfect_tile(scene: Scene) -> Drawn:
    loop = scene.choose(scene.serial)
    if loop is None:
        return None
    return {
        "loop": loop.node.var, "name": f"tile{len(scene.trace)}", "parts": scene.rng.choice((2, 3)),
        "largest": scene.rng.choice((2, 4, 8)), "seed": scene.rng.randrange(100),
    }  # fmt: skip


def fuse(scene: Scene) -> Drawn:
    choice = scene.choose([site for site in scene.serial if _is_nest(site.node)])
    if choice is None:
        return None
    loops = [choice.node]
    while _is_nest(loops[-1]):
        loops.append(loops[-1].body[0])
    return {"loops": tuple(loop.var for loop in loops[: scene.rng.choice((2, 2, 3))])}


def _is_nest(loop: For) -> bool:
    return len(loop.body) == 1 and isinstance(loop.body[0], For)


def reorder(scene: Scene) -> Drawn:
    site = scene.choose([site for site in scene.blocks if len(site.nest) > 1])
    if site is None:
        return None
    names = [loop.var for loop in site.nest]
    return {"loops": tuple(scene.rng.sample(names, scene.rng.randint(2, len(names))))}


def lift_loop(scene: Scene) -> Drawn:
    inside = [site for site in scene.serial if isinstance(site.parents[-1], Block)]
    alone = [site for site in inside if len(site.body) == 1 and not site.parents[-1].init]
    loop = scene.choose(alone if scene.chance(0.9) else inside)
    return loop and {"loop": loop.node.var}


def align(scene: Scene) -> Drawn:
    innermost = [site for site in scene.serial if all(isinstance(s, Block) for s in site.node.body)]
    loop = scene.choose(innermost)
    if loop is None or scene.module.stage != "loop":
        return None
    used = [
        node.buffer for block in loop.node.body for node in walk(block) if isinstance(node, Load)
    ]
    buffer, lanes = scene.choose(used), scene.rng.choice((2, 4, 8))
    return buffer and {"loop": loop.node.var, "buffer": buffer, "lanes": lanes}


def uniform_extent(scene: Scene) -> Drawn:
    """Prefers an extent that depends on the loop around it."""
    nested = [(site.node, outer) for site in scene.serial for outer in site.nest]
    varying = [(inner, outer) for inner, outer in nested if outer.var in free_vars(inner.extent)]
    choice = scene.choose(varying if scene.chance(0.9) else nested)
    if choice is None:
        return None
    inner, outer = choice
    drawn = {"loop": inner.var, "over": outer.var}
    # Only where it may be legal, and else nothing is drawn.
    if integer_value(outer.extent) is not None and scene.chance(0.5):
        drawn["inline"] = True
    return drawn


GENERATORS: dict[str, ArgumentGenerator] = {
    primitive.__name__: primitive
    for primitive in (split, sample_perfect_tile, fuse, reorder, lift_loop, align, uniform_extent)
}
