"""Argument generators of the primitives that decompose reductions."""

from __future__ import annotations

from gossamer_ir.nodes import Binary, Block, Store
from tests.fuzzing.schedules.argument_generators.scene import (
    ArgumentGenerator,
    Drawn,
    Scene,
    loaded,
    stored,
)


def decompose_reduction(scene: Scene) -> Drawn:
    site = scene.choose([site for site in scene.blocks if site.node.init and site.loops])
    if site is None:
        return None
    reducing = scene.feeding(site, "R")
    around = [loop.var for loop in site.loops]
    fitting = around[: 1 + around.index(reducing[0])] if reducing else around
    loop = scene.rng.choice(fitting if scene.chance(0.8) else around)
    return {"block": site.node.name, "loop": loop}


def rfactor(scene: Scene) -> Drawn:
    loops = [name for site in scene.blocks for name in scene.feeding(site, "R")]
    loop = scene.choose(loops)
    return loop and {"loop": loop, **scene.rng.choice(({}, {}, {"axis": 1}, {"axis": 2}))}


def fuse_reduction_epilogue(scene: Scene) -> Drawn:
    pairs = [
        (site.node, after.node)
        for site in scene.makers
        for after in scene.users
        if site.node.init and not after.node.init and {*stored(site.node)} & loaded(after.node)
    ]
    likely = [pair for pair in pairs if _is_combining(*pair)]
    choice = scene.choose(likely if likely or scene.chance(0.9) else pairs)
    return choice and {"block": choice[0].name, "epilogue": choice[1].name}


def _is_combining(block: Block, after: Block) -> bool:
    """True if a block unconditionally stores a value combined by the operation of another block."""
    first, last = block.body[-1], after.body[-1]
    if not isinstance(first, Store) or not isinstance(last, Store) or after.predicate is not None:
        return False
    values = (first.value, last.value)
    operations = [value.op for value in values if isinstance(value, Binary)]
    return len(operations) == 2 and (len({*operations}) == 1 or operations == ["add", "sub"])


GENERATORS: dict[str, ArgumentGenerator] = {
    primitive.__name__: primitive
    for primitive in (decompose_reduction, rfactor, fuse_reduction_epilogue)
}
