"""Random programs, random legal schedules: every stage and the machine code mean what NumPy says."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import gossamer
from gossamer.build import default_schedule, resolve
from gossamer_ir.contracts import Stats
from gossamer_ir.errors import ScheduleError, UnsupportedError
from gossamer_ir.interpret import run
from gossamer_ir.nodes import Block, For, Iteration, Module
from gossamer_ir.script import parse_module, print_module
from gossamer_ir.verify import diagnostics, verify
from gossamer_ir.walk import walk
from gossamer_lower import lower_buffers, lower_iterations, lower_to_flat
from gossamer_schedule import ScheduleBuilder, get_blocks, get_loops, replay
from tests.generated_programs import Program, draw_program

FACTORS = ((None, 2), (None, 3), (None, 4), (None, 8), (None, 16), (None, 2, 4), (None, 1))
STEPS = (
    *("split",) * 6, *("reorder",) * 3, *("cache_write",) * 2, *("reverse_compute_at",) * 3,
    "decompose_reduction", "unroll", *("vectorize",) * 6, *("parallel",) * 2,
)  # fmt: skip
REFUSALS = frozenset(
    {"llvm.lanes", "lower.let_above_block", "lower.unmasked_lane", "lower.vectorize"}
)
"""Schedules and programs may be refused for these reasons."""


# --- schedules


def scheduled(rng: Random, module: Module, steps: int) -> Module:
    """The module after random steps; those that are refused leave no trace."""
    builder = ScheduleBuilder(module)
    for _ in range(steps):
        before = builder.module
        try:
            draw_step(rng, builder)
        except ScheduleError:
            assert builder.module is before
    require_valid(builder.module)
    return builder.module


def draw_step(rng: Random, builder: ScheduleBuilder) -> None:
    loops, blocks = get_loops(builder.module), get_blocks(builder.module)
    splits = sum(step.op == "split" for step in builder.trace)
    match rng.choice(STEPS):
        case "split" if splits < 4:
            factors = rng.choice(FACTORS) if splits else rng.choice((*FACTORS, (2, 8)))
            builder.split(rng.choice(loops), factors=factors)
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
            builder.vectorize(rng.choice(innermost(builder.module)))
        case "parallel":
            builder.parallel(rng.choice(loops), grain=1)
        case _:
            builder.unroll(rng.choice(loops))


def written_by(module: Module, name: str) -> str:
    (block,) = (found for found in nodes(module, Block) if found.name == name)
    stores = [found.buffer for found in block.body if hasattr(found, "buffer")]
    return stores[0] if stores else "none"


def innermost(module: Module) -> list[str]:
    loops = [f for f in nodes(module, For) if sum(isinstance(n, For) for n in walk(f)) == 1]
    return [found.var for found in loops]


def nodes(module: Module, kind):
    return [n for s in module.functions[0].body for n in walk(s) if isinstance(n, kind)]


def reordered(rng: Random, module: Module) -> Module:
    """The iterations with their axes in another order."""
    builder = ScheduleBuilder(module)
    for found in nodes(module, Iteration):
        order = rng.sample(list(found.vars), len(found.vars))
        try:
            builder.sparse_reorder(found.name, order=tuple(order))
        except ScheduleError:
            continue
    return builder.module


# --- stages


def stages(rng: Random, module: Module):
    """The module at each stage, after the default rules' schedule or a random one."""
    _, target = resolve("generic-cpu")
    stats = rng.choice((None, Stats(5, 5, 20, 9, 1), Stats(1000, 1000, 100000, 500, 0)))
    chosen = default_schedule(module, target, stats)
    yield module
    is_default = bool(chosen.loop or chosen.position) and rng.random() < 0.3
    module = replay(module, chosen.coordinate) if is_default else reordered(rng, module)
    yield module
    module = lower_iterations(module)
    yield module
    steps = rng.choice((0, 0, 3, 8))
    module = replay(module, chosen.position) if is_default else scheduled(rng, module, steps)
    yield module
    module = lower_buffers(module)
    yield module
    steps = rng.choice((0, 3, 8, 14, 20))
    module = replay(module, chosen.loop) if is_default else scheduled(rng, module, steps)
    yield module
    yield lower_to_flat(module)


def require_valid(module: Module) -> None:
    found = [(item.code, item.message) for item in diagnostics(module)]
    assert not found, (module.stage, found)


def require_expected(program: Program, arrays, what: str) -> None:
    for name, expected in program.expected.items():
        np.testing.assert_array_equal(arrays[name], expected.ravel(), err_msg=f"{name}, {what}")


def check(rng: Random, program: Program) -> str:
    """Runs a program at every stage; how far it came ("native", or the code of a refusal)."""
    try:
        for current in stages(rng, verify(parse_module(program.text))):
            require_valid(current)
            arrays = {name: array.flatten() for name, array in program.arrays.items()}
            run(current, {**arrays, **program.sizes}, chunks=rng.choice((1, 3)))
            require_expected(program, arrays, f"stage {current.stage}")
        backend, target = resolve("generic-cpu")
        kernel = backend.load(backend.compile(current, target))
    except UnsupportedError as error:
        return error.code
    assert parse_module(print_module(current)) == current
    arrays = {name: array.flatten() for name, array in program.arrays.items()}
    gossamer.set_num_threads(rng.choice((1, 2, 3)))
    kernel(**arrays, **program.sizes)
    require_expected(program, arrays, "native")
    return "native"


@pytest.fixture
def threads():
    before = gossamer.get_num_threads()
    yield
    gossamer.set_num_threads(before)


@pytest.mark.parametrize("special", [False, True], ids=["integers", "nan and infinity"])
def test_programs_mean_the_same_at_every_stage_and_as_machine_code(threads, special):
    outcomes: Counter[str] = Counter()

    @given(st.integers(0, 2**32))
    @settings(
        max_examples=12 if special else 36, deadline=None, derandomize=True, database=None,
        phases=[Phase.generate], suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    def examples(seed):
        rng = Random(seed)
        outcomes[check(rng, draw_program(rng, special=special))] += 1

    examples()
    assert set(outcomes) - {"native"} <= REFUSALS, outcomes
    assert outcomes["native"] >= 0.8 * outcomes.total(), outcomes
