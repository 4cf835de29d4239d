"""Random legal schedules: those of the default rules for random machines and data, or random steps."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from gossamer.compilation.pipeline import schedule_for_target
from gossamer.targets.resolve_target import resolve_target
from gossamer_ir.errors import ScheduleError
from gossamer_ir.interchange.records import Schedule, Stats
from gossamer_ir.nodes import Block, For, Iteration, Module, Node, OverAxis, Store
from gossamer_ir.traversal.walk import walk
from gossamer_schedule import ScheduleBuilder, get_blocks, get_loops, replay
from tests.fuzzing.execution.compilers import TOO_LARGE, Scheduler

FACTORS = ((None, 2), (None, 3), (None, 4), (None, 8), (None, 16), (None, 2, 4), (None, 1))
STEPS = (
    *("split",) * 6, *("reorder",) * 3, *("cache_write",) * 2, *("reverse_compute_at",) * 3,
    "decompose_reduction", *("unroll",) * 2, *("vectorize",) * 6, *("parallel",) * 2,
    *("group",) * 2, *("staged",) * 2, "prefetch",
)  # fmt: skip
TARGETS = ("generic-cpu", *(f"generic-cpu:vector_bits={bits}" for bits in (128, 256, 512)))
LATER_FACTORS = ((None, 2), (None, 3), (None, 1))
"""Factors of later splits: each rounds the iterations up."""
MAX_SPLITS = 5
REFUSED_SCHEDULES = frozenset(
    {
        TOO_LARGE,
        "llvm.lanes",
        "lower.lower_blocks.conflicting_inits",
        "lower.lower_blocks.let_above_block",
        "lower.lower_iterations.missing_parent",
        "lower.insert_bounds_checks.unmasked_lane",
        "plugin.undeclared",
        "lower.unroll_loops.size",
        "lower.vectorize_loops.no_vector_form",
    }
)
"""The error codes with which a program may be rejected because of its schedule."""


def random_schedule(
    rng: Random, module: Module, *, rules: float = 0.3, targets: Sequence[str] = TARGETS
) -> Scheduler:
    """A schedule for each stage: random steps, or (with probability `rules`, if a rule applies) the choice of
    the default rules for a random machine and random data."""
    target = rng.choice(targets)
    chosen = schedule_for_target(module, resolve_target(target)[1], draw_stats(rng))
    if (chosen.loop or chosen.position) and rng.random() < rules:
        return replayed(chosen)
    counts = {"position": rng.choice((0, 0, 3, 8)), "loop": rng.choice((0, 3, 8, 14, 20))}

    def schedule(current: Module) -> Module:
        if current.stage == "coordinate":
            return rearranged(rng, current)
        return scheduled(rng, current, counts.get(current.stage, 0))

    return schedule


def replayed(chosen: Schedule) -> Scheduler:
    """A given schedule, applied stage by stage."""
    traces = {"coordinate": chosen.coordinate, "position": chosen.position, "loop": chosen.loop}
    return lambda current: replay(current, traces.get(current.stage, ()))


def by_rules(module: Module, target: str = "generic-cpu") -> Scheduler:
    """The schedule that the default rules choose for a program."""
    return replayed(schedule_for_target(module, resolve_target(target)[1], None))


def draw_stats(rng: Random) -> Stats | None:
    """Draws statistics, which need not be those of the data."""
    rows = rng.choice((0, 5, 1000))
    nnz = rows * rng.choice((0, 1, 4, 40, 300))
    stats = Stats(rows, rng.choice((0, 5, 1000)), nnz, min(nnz, 500), rng.choice((0, rows)))
    return rng.choice((None, stats))


def rearranged(rng: Random, module: Module) -> Module:
    """The iterations with their axes in another order, some of them fused."""
    builder = ScheduleBuilder(module)
    for iteration in nodes(module, Iteration):
        order = rng.sample(list(iteration.vars), len(iteration.vars))
        try:
            if rng.random() < 0.5:
                builder.sparse_reorder(iteration.name, order=tuple(order))
        except ScheduleError:
            pass
        axes = [item.axis for item in iteration.axes if isinstance(item, OverAxis)]
        count = rng.choice((2, 2, 3))
        start = rng.randint(0, max(len(axes) - count, 0))
        try:
            if rng.random() < 0.6:
                builder.sparse_fuse(iteration.name, axes=tuple(axes[start : start + count]))
        except ScheduleError:
            continue
    return builder.module


def scheduled(rng: Random, module: Module, steps: int) -> Module:
    """The module after random steps; rejected steps change nothing."""
    builder = ScheduleBuilder(module)
    for _ in range(steps):
        before = builder.module
        try:
            draw_step(rng, builder)
        except ScheduleError:
            assert builder.module is before or builder.trace
    return builder.module


def draw_step(rng: Random, builder: ScheduleBuilder) -> None:
    loops, blocks = get_loops(builder.module), looped_blocks(builder.module)
    if not blocks:
        return
    splits = sum(step.op == "split" for step in builder.trace)
    match rng.choice(STEPS):
        case "split" if splits < MAX_SPLITS:
            factors = rng.choice(
                (*FACTORS, (2, 8)) if not splits else LATER_FACTORS if splits > 1 else FACTORS
            )
            builder.split(rng.choice(loops), factors=factors)
        case "group" if splits < 2:
            draw_group(rng, builder)
        case "staged":
            draw_staged(rng, builder)
        case "reorder":
            nest = list(get_loops(builder.module, rng.choice(blocks)))
            builder.reorder(*rng.sample(nest, rng.randint(min(2, len(nest)), len(nest))))
        case "cache_write":
            block = rng.choice(blocks)
            scope = rng.choice(("local", "global"))
            builder.cache_write(block, buffer=written_by(builder.module, block), scope=scope)
        case "reverse_compute_at":
            copies = [name for name in blocks if "local" in name or "global" in name]
            builder.reverse_compute_at(rng.choice(copies or blocks), loop=rng.choice(loops))
        case "decompose_reduction":
            builder.decompose_reduction(rng.choice(blocks), loop=rng.choice(loops))
        case "vectorize":
            remainder = rng.choice((None, "masked", "scalar"))
            builder.vectorize(rng.choice(innermost(builder.module)), remainder=remainder)
        case "parallel":
            builder.parallel(rng.choice(loops), grain=1)
        case "prefetch":
            block = rng.choice(blocks)
            buffer = rng.choice([buffer.name for buffer in builder.module.functions[0].buffers])
            nest = rng.choice(get_loops(builder.module, block))
            builder.prefetch(block, buffer=buffer, loop=nest, distance=rng.choice((1, 4)))
        case _:
            builder.unroll(rng.choice(loops))


def draw_group(rng: Random, builder: ScheduleBuilder) -> None:
    """Groups of adjacent iterations with lanes along another loop, as for reductions in registers."""
    nest = get_loops(builder.module, rng.choice(looped_blocks(builder.module)))
    outer, inner = rng.choice(nest), nest[-1]
    if outer == inner:
        return
    _, group = builder.split(outer, factors=(None, rng.choice((4, 8)))).names
    builder.unroll(group)
    _, lanes = builder.split(inner, factors=(None, rng.choice((2, 4, 8)))).names
    builder.vectorize(lanes, remainder=rng.choice((None, "masked")))


def draw_staged(rng: Random, builder: ScheduleBuilder) -> None:
    """A block that accumulates in a cache, which is copied at the end of an enclosing loop."""
    block = rng.choice(looped_blocks(builder.module))
    nest = get_loops(builder.module, block)
    buffer = written_by(builder.module, block)
    builder.cache_write(block, buffer=buffer, scope=rng.choice(("local", "local", "global")))
    copy = f"{block}_{builder.names[0]}"
    builder.reverse_compute_at(copy, loop=rng.choice(nest))
    builder.decompose_reduction(block, loop=rng.choice(nest))


def looped_blocks(module: Module) -> list[str]:
    """The blocks with an enclosing loop."""
    return [name for name in get_blocks(module) if get_loops(module, name)]


def written_by(module: Module, name: str) -> str:
    (block,) = (node for node in nodes(module, Block) if node.name == name)
    stores = [stmt.buffer for stmt in block.body if isinstance(stmt, Store)]
    return stores[0] if stores else "none"


def innermost(module: Module) -> list[str]:
    loops = [f for f in nodes(module, For) if sum(isinstance(n, For) for n in walk(f)) == 1]
    return [loop.var for loop in loops]


def nodes(module: Module, kind: type[Node]) -> list:
    return [n for s in module.functions[0].body for n in walk(s) if isinstance(n, kind)]
