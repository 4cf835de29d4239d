"""Random schedules for devices with threads, which stage operands in shared memory, pipeline the copies, and
bind reductions to threads. Rejected steps are left out.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random

from gossamer_ir.core.build import integer_value
from gossamer_ir.errors import ScheduleError
from gossamer_ir.nodes import Block, For, Load, Module
from gossamer_ir.traversal.walk import walk
from gossamer_schedule import ScheduleBuilder, get_loops
from tests.fuzzing.execution.compilers import Scheduler
from tests.fuzzing.schedules.draw_schedule import looped_blocks, nodes, written_by

TILES, LANES = (1, 2, 3, 4, 8), (1, 2, 3, 4, 8, 16, 32, 48)


def staged_schedule(rng: Random) -> Scheduler:
    """A schedule for the loop stage."""
    return lambda module: staged(rng, module) if module.stage == "loop" else module


def staged(rng: Random, module: Module) -> Module:
    """The module after random steps for one of its blocks, or each; loops are bound to threads at last."""
    builder = ScheduleBuilder(module)
    blocks = looped_blocks(module)
    for block in blocks if rng.random() < 0.5 else rng.sample(blocks, min(1, len(blocks))):
        for step in (tile, stage_operands, write_later, decompose, copy_ahead):
            attempt(partial(step, rng, builder, block))
    attempt(partial(bind_grid, rng, builder))
    for block in sorted(looped_blocks(builder.module), key=lambda _: rng.random()):
        attempt(partial(distribute, rng, builder, block))
    return builder.module


def attempt(step: Callable[[], object]) -> bool:
    """Take a step that may be refused; False where it is."""
    try:
        step()
    except ScheduleError:
        return False
    return True


def tile(rng: Random, builder: ScheduleBuilder, block_name: str) -> None:
    """Split some loops around a block, and move the outer ones outwards."""
    outer, inner = [], []
    for loop in get_loops(builder.module, block_name):
        if rng.random() < 0.7:
            first, second = builder.split(loop, factors=(None, rng.choice(TILES))).names
            outer.append(first)
            inner.append(second)
        else:
            rng.choice((outer, inner)).append(loop)
    if rng.random() < 0.2:
        rng.shuffle(inner)
    builder.reorder(loops=(*outer, *inner))


def stage_operands(rng: Random, builder: ScheduleBuilder, block_name: str) -> None:
    """Copy some operands of a block to shared memory, in one of its loops."""
    loop = rng.choice(get_loops(builder.module, block_name))
    for buffer in read_by(builder.module, block_name):
        if rng.random() < 0.8:
            attempt(partial(stage, rng, builder, block_name, buffer, loop))


def stage(
    rng: Random, builder: ScheduleBuilder, block_name: str, buffer_name: str, loop_name: str
) -> None:
    cached = rng.choice((builder.cache_read, builder.reindex_cache_read))
    copy = cached(
        block_name, buffer=buffer_name, scope=rng.choice(("shared",) * 4 + ("local",))
    ).names[1]
    builder.compute_at(copy, loop=loop_name)


def write_later(rng: Random, builder: ScheduleBuilder, block_name: str) -> None:
    """Keep the result of a block in registers or in shared memory, and copy it later."""
    if rng.random() < 0.4:
        buffer, scope = written_by(builder.module, block_name), rng.choice(("local", "shared"))
        copy = builder.cache_write(block_name, buffer=buffer, scope=scope).names[1]
        builder.reverse_compute_at(copy, loop=rng.choice(get_loops(builder.module, block_name)))


def decompose(rng: Random, builder: ScheduleBuilder, block_name: str) -> None:
    if rng.random() < 0.8:
        loops = get_loops(builder.module, block_name)
        for loop in rng.sample(loops, len(loops)):
            if attempt(partial(builder.decompose_reduction, block_name, loop=loop)):
                return


def copy_ahead(rng: Random, builder: ScheduleBuilder, block_name: str) -> None:
    """Make a pipeline of a loop whose body begins with copies."""
    if rng.random() < 0.7:
        several = [loop.var for loop in nodes(builder.module, For) if len(loop.body) > 1]
        builder.pipeline(rng.choice(several or ["none"]), stages=rng.choice((2, 3, 4)))


def bind_grid(rng: Random, builder: ScheduleBuilder) -> None:
    """Bind loops that contain all others to the blocks of a grid."""
    axes = rng.sample(("blockIdx.x", "blockIdx.y"), rng.choice((0, 1, 1, 1, 2, 2)))
    nest = get_loops(builder.module)
    for loop, axis in zip(nest, axes, strict=False):
        if not attempt(partial(builder.bind, loop, thread=axis)):
            return


def distribute(rng: Random, builder: ScheduleBuilder, block_name: str) -> None:
    """Bring loops around a block to threads: each loop by itself, or several as one."""
    lanes = lanes_of(builder.module) or rng.choice(LANES)
    serial = [
        loop
        for loop in get_loops(builder.module, block_name)
        if any(node.kind == "serial" for node in nodes(builder.module, For) if node.var == loop)
    ]
    first = rng.randrange(len(serial)) if serial else 0
    chosen = serial[first:][: rng.choice((1, 2, 2, 3))]
    if rng.random() < 0.4:  # often the loop over the terms of a reduction
        chosen = serial[-1:]
    if len(chosen) > 1:
        attempt(partial(fuse_and_bind, rng, builder, tuple(chosen), lanes))
    elif chosen:
        split_and_bind(rng, builder, chosen[0], lanes)


def fuse_and_bind(
    rng: Random, builder: ScheduleBuilder, loops: tuple[str, ...], lanes: int
) -> None:
    split_and_bind(rng, builder, builder.fuse(loops=loops).names[0], lanes)


def split_and_bind(rng: Random, builder: ScheduleBuilder, loop_name: str, lanes: int) -> None:
    if attempt(partial(builder.bind, loop_name, thread="threadIdx.x")):
        return
    outer, inner = builder.split(loop_name, factors=(None, lanes)).names
    if rng.random() < 0.2:
        attempt(partial(builder.reorder, inner, outer))
    builder.bind(inner, thread=rng.choice(("threadIdx.x",) * 5 + ("threadIdx.y",)))


def lanes_of(module: Module) -> int | None:
    """The number of threads along the first axis of a block, if a loop is bound to it."""
    for loop in nodes(module, For):
        if loop.thread == "threadIdx.x":
            return integer_value(loop.extent)
    return None


def read_by(module: Module, name: str) -> list[str]:
    """The buffers that a block reads, other than those that it writes."""
    (block,) = (node for node in nodes(module, Block) if node.name == name)
    loads = {node.buffer for node in walk(block) if isinstance(node, Load)}
    return sorted(loads - {written_by(module, name)})
