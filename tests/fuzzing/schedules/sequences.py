"""Random sequences of primitives, drawn step by step and stage by stage; rejected steps are left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from math import prod
from random import Random
from typing import TypeAlias

from gossamer_ir.core.build import integer_value
from gossamer_ir.errors import ScheduleError
from gossamer_ir.interchange.records import Step, Trace
from gossamer_ir.nodes import Allocate, Binary, Expr, For, Module, StageName, Stmt
from gossamer_ir.traversal.walk import stmts, walk
from gossamer_schedule import ScheduleBuilder
from gossamer_schedule.cursor.cursor_at import ADDRESSABLE_BODIES
from tests.fuzzing.programs.generators import beside
from tests.fuzzing.schedules.argument_generators import GENERATORS, INTRINSICS, Scene

Traces: TypeAlias = Mapping[StageName, Trace]

LENGTHS: dict[StageName, tuple[int, ...]] = {
    "coordinate": (0, 1, 2, 3),
    "position": (0, 0, 2, 4, 8),
    "loop": (0, 3, 6, 9, 12),
}
"""The number of steps to be accepted at each stage."""
TRIES = 4
"""The number of attempts for each of them."""
MAX_ITERATIONS, USUAL_EXTENT = 300_000, 8
"""Steps that increase the number of executed statements beyond this limit are left out, such as caches of all
elements in inner loops."""
MAX_NODES = 10_000
"""The maximum size of a module: inlined indices can double the size of an expression."""
COMMON = 4
WEIGHTS = {
    "annotate": 1, "unannotate": 2, "sample_categorical": 1, "sample_perfect_tile": 2,
    "split": 10, "bind": 12, "lift_loop": 8, "pipeline": 6, "decompose_padding": 40, "fission": 6,
    "horizontal_fuse": 60,
    "hide_buffer_access": 1,
    "set_block_filter": 1, "fuse_reduction_epilogue": 100, "rolling_buffer": 120,
}  # fmt: skip
"""The weights of primitives; `COMMON` for all others."""
SCALABLE_WEIGHTS = {"vectorize": 60, "split": 40}
"""Further weights of sequences for scalable vectors."""
CONVERTED = 0.15
"""How often these convert lanes."""
LATER = {"uniform_extent": 0.005, "convert_lanes": 0.005, "parallel_reduction": 0.01}
"""How often primitives are drawn that have their numbers from a generator `beside` the usual one."""


@dataclass
class Sequence:
    """A scheduler (see `compilers`) that draws steps and keeps them for each stage. `builder` has the
    primitives that are drawn; `tried` counts their steps, accepted or not. Scenes are `for_threads` and
    `is_scalable`."""

    rng: Random
    builder: type[ScheduleBuilder] = ScheduleBuilder
    weights: Mapping[str, int] = field(default_factory=dict)
    for_threads: bool = False
    is_scalable: bool = False
    traces: dict[StageName, Trace] = field(default_factory=dict)
    tried: Counter[str] = field(default_factory=Counter)

    @property
    def steps(self) -> Trace:
        return tuple(step for trace in self.traces.values() for step in trace)

    def __call__(self, module: Module) -> Module:
        builder = self._begun(module, ())
        wanted = self.rng.choice(LENGTHS[module.stage])
        for _ in range(TRIES * wanted):
            if len(builder.trace) >= wanted:
                break
            step, trace = self._drawn(builder), builder.trace
            if step is not None:
                self.tried[step.op] += 1
                if is_taken(builder, step) and is_too_large(builder.module):
                    builder = self._begun(module, trace)
        self.traces[module.stage] = builder.trace
        return builder.module

    def _begun(self, module: Module, trace: Trace) -> ScheduleBuilder:
        """A builder to which some steps were applied."""
        return self.builder(module, intrinsics=INTRINSICS).replay(trace)

    def _scene(self, rng: Random, builder: ScheduleBuilder) -> Scene:
        return Scene(rng, builder.module, builder.trace, self.for_threads, self.is_scalable)

    def _drawn(self, builder: ScheduleBuilder) -> Step | None:
        """A random step that may be applicable."""
        later = self._drawn_beside(builder)
        if later is not None:
            return later
        scene = self._scene(self.rng, builder)
        ops = [op for op in GENERATORS if op not in LATER]
        weights = [self.weights.get(op, WEIGHTS.get(op, COMMON)) for op in ops]
        for op in self.rng.choices(ops, weights, k=5):
            args = GENERATORS[op](scene)
            if args is not None:
                return Step(op, args)
        return None

    def _drawn_beside(self, builder: ScheduleBuilder) -> Step | None:
        """A step of one of the primitives that are drawn beside the others."""
        rng = beside(self.rng)
        scene = self._scene(rng, builder)
        for op, often in LATER.items():
            if op == "convert_lanes" and self.is_scalable:
                often = CONVERTED
            if rng.random() < (0.5 if op in self.weights else often):
                args = GENERATORS[op](scene)
                if args is not None:
                    return Step(op, args)
        return None


def is_too_large(module: Module) -> bool:
    """True if it has too many nodes, or runs too many statements."""
    has_more = next(islice(walk(module), MAX_NODES, None), None) is not None
    return has_more or iterations(module) > MAX_ITERATIONS


def iterations(module: Module) -> int:
    """An estimate of the number of statements that a module runs."""
    return sum(_runs(stmt) for function in module.functions for stmt in function.body)


def _runs(stmt: Stmt) -> int:
    inside = 1 + sum(
        _runs(below)
        for field in ADDRESSABLE_BODIES.get(type(stmt), ())
        for below in getattr(stmt, field)
    )
    return inside * max(usual(stmt.extent), 0) if isinstance(stmt, For) else inside


def elements(module: Module) -> int:
    """An estimate of the number of elements that a module allocates."""
    return sum(
        prod(map(usual, stmt.buffer.shape))
        for function in module.functions
        for stmt in stmts(function.body)
        if isinstance(stmt, Allocate)
    )


def usual(extent: Expr) -> int:
    """An estimate of an extent: `n + 2**31` is large for every `n`."""
    constant = integer_value(extent)
    if constant is not None:
        return constant
    match extent:
        case Binary(op="add"):
            return usual(extent.lhs) + usual(extent.rhs)
        case Binary(op="mul"):
            return usual(extent.lhs) * usual(extent.rhs)
    return USUAL_EXTENT


def is_taken(builder: ScheduleBuilder, step: Step) -> bool:
    """Applies a step; False if it is rejected."""
    try:
        builder.replay((step,))
    except ScheduleError:
        return False
    return True


def kept(
    traces: Traces, module: Module, builder_type: type[ScheduleBuilder] = ScheduleBuilder
) -> Module:
    """The module after the steps for its stage, without those that are rejected."""
    builder = builder_type(module, intrinsics=INTRINSICS)
    for step in traces.get(module.stage, ()):
        is_taken(builder, step)
    return builder.module


def shortest(traces: Traces, is_wrong: Callable[[Traces], bool]) -> Traces:
    """A minimal failing sequence: no step can be left out."""
    is_shorter = True
    while is_shorter:
        is_shorter = False
        for candidate in _with_one_less(traces):
            if is_wrong(candidate):
                traces, is_shorter = candidate, True
                break
    return traces


def _with_one_less(traces: Traces) -> Iterator[Traces]:
    for stage, trace in reversed(traces.items()):
        for at in reversed(range(len(trace))):
            yield {**traces, stage: trace[:at] + trace[at + 1 :]}
