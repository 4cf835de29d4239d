"""Random programs: a forest, then iterations over it, one after the other."""

from __future__ import annotations

from random import Random

from gossamer_ir.nodes import Function, Module, Param
from tests.fuzzing.execution.array_placement import draw_places
from tests.fuzzing.programs.buffers import DTYPES
from tests.fuzzing.programs.forests import DrawnForest
from tests.fuzzing.programs.iterations import Bodies
from tests.fuzzing.programs.program import Program
from tests.fuzzing.programs.rule_patterns import Common

TRIES = 100


def draw_program(rng: Random, *, is_common: bool | None = None) -> Program:
    """Draws programs until one has a meaning. `is_common`: of a pattern that default rules recognize, or not;
    by default a few are."""
    for _ in range(TRIES):
        program = drawn(rng, is_common=is_common)
        if program.has_meaning:
            return program
    raise AssertionError(f"none of {TRIES} programs has a meaning")


def drawn(rng: Random, *, is_common: bool | None = None) -> Program:
    """Draws a program, which may have no meaning."""
    if is_common is None:
        is_common = rng.random() < 0.12
    forest = DrawnForest(rng) if is_common else DrawnForest(rng).draw()
    bodies = Bodies(
        rng,
        forest,
        is_special=rng.random() < 0.15,
        is_careless=not is_common and rng.random() < 0.08,
        dtypes=tuple({rng.choice(DTYPES): None for _ in range(rng.choice((1, 1, 2, 3)))}),
    )
    count = rng.choice((1, 1, 2, 3))
    body = [Common(bodies).draw()] if is_common else [bodies.iteration() for _ in range(count)]
    scalars = {
        **{name: ("int64", value) for name, value in forest.scalars.items()},
        **bodies.scalars,
    }
    arrays = {**forest.arrays, **bodies.arrays}
    params = [Param(name, "handle") for name in arrays]
    params += [Param(name, dtype) for name, (dtype, _) in scalars.items()]
    rng.shuffle(params)
    function = Function(
        "main",
        tuple(params),
        tuple(body),
        axes=tuple(forest.axes),
        buffers=tuple(bodies.buffers),
        relations=tuple(relation for relation in forest.relations if rng.random() < 0.7),
        facts=tuple(bodies.facts),
        reducers=tuple(bodies.reducers),
    )
    sizes = {name: value for name, (_, value) in scalars.items()}
    module = Module("coordinate", (function,), "main")
    return Program(module, arrays, sizes, bodies.tolerances, draw_places(rng, arrays))
