"""Random sequences of primitives on programs of the position and loop stage; some arguments are extreme
integers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

from gossamer_ir.errors import UserError
from gossamer_ir.interchange.records import Step, Trace
from gossamer_ir.nodes import Module, StageName
from gossamer_schedule import ScheduleBuilder
from tests.fuzzing.lowered.programs.scope import EXTREMES
from tests.fuzzing.schedules.argument_generators import GENERATORS, INTRINSICS, Scene
from tests.fuzzing.schedules.sequences import Traces, elements, iterations

MAX_ITERATIONS, MAX_ELEMENTS, TRIES = 30_000, 1_000_000, 3
LENGTHS = (1, 2, 2, 3, 4, 6)
COMMON = 6
WEIGHTS = {
    "annotate": 1, "unannotate": 1, "sample_categorical": 1, "sample_perfect_tile": 1, "split": 8,
    "set_scope": 2, "unroll": 4, "pipeline": 3, "blockize": 3, "bind": 3, "compute_at": 12,
    "compute_inline": 12, "reverse_compute_at": 12, "reverse_compute_inline": 12, "cache_write": 10,
    "reindex_cache_write": 10, "rfactor": 12, "decompose_reduction": 10, "vectorize": 10,
    "transform_layout": 8, "storage_align": 8, "parallel": 10, "reorder": 10,
}  # fmt: skip
"""The weights of primitives; `COMMON` for all others."""
EXTREME = 0.06
"""The share of steps with an extreme integer."""


@dataclass
class Steps:
    """A schedule that draws steps and keeps the accepted ones for each stage. `weights` are those of
    primitives that are drawn more often; `builder` has the primitives."""

    rng: Random
    builder: type[ScheduleBuilder] = ScheduleBuilder
    weights: Mapping[str, int] = field(default_factory=dict)
    traces: dict[StageName, Trace] = field(default_factory=dict)
    tried: Counter[str] = field(default_factory=Counter)

    @property
    def steps(self) -> Trace:
        return tuple(step for trace in self.traces.values() for step in trace)

    def __call__(self, module: Module) -> Module:
        builder = self.builder(module, intrinsics=INTRINSICS)
        wanted = self.rng.choice(LENGTHS)
        for _ in range(TRIES * wanted):
            if len(builder.trace) >= wanted:
                break
            step = self._drawn(builder)
            if step is not None:
                self.tried[step.op] += 1
                builder = self._taken(builder, step)
        self.traces[module.stage] = builder.trace
        return builder.module

    def _taken(self, builder: ScheduleBuilder, step: Step) -> ScheduleBuilder:
        before = builder.trace
        try:
            builder.replay((step,))
        except UserError:
            return builder
        most = max(MAX_ITERATIONS, iterations(builder.program))
        if iterations(builder.module) <= most and elements(builder.module) <= MAX_ELEMENTS:
            return builder
        return self.builder(builder.program, intrinsics=INTRINSICS).replay(before)

    def _drawn(self, builder: ScheduleBuilder) -> Step | None:
        scene = Scene(self.rng, builder.module, builder.trace, for_threads=True)
        weights = [self.weights.get(op, WEIGHTS.get(op, COMMON)) for op in GENERATORS]
        for op in self.rng.choices([*GENERATORS], weights, k=6):
            args = GENERATORS[op](scene)
            if args is not None:
                is_extreme = self.rng.random() < EXTREME
                return Step(op, extreme(self.rng, args) if is_extreme else args)
        return None


def extreme(rng: Random, args: Mapping[str, Any]) -> dict[str, Any]:
    """The same arguments with one integer replaced by an extreme one, if there is an integer."""
    places = [(name, at) for name, value in args.items() for at in _integers(value)]
    if not places:
        return dict(args)
    name, at = rng.choice(places)
    number = rng.choice((*EXTREMES, 0, 1, -1))
    value = args[name]
    changed = number if at is None else (*value[:at], number, *value[at + 1 :])
    return {**args, name: changed}


def _integers(value: object) -> list[int | None]:
    """The keys of arguments that contain integers; `None` for an integer itself."""
    if isinstance(value, bool):
        return []
    if isinstance(value, int):
        return [None]
    if isinstance(value, tuple):
        return [number for number, part in enumerate(value) if isinstance(part, int)]
    return []


@dataclass(frozen=True)
class Replayed:
    """A schedule of given steps; rejected steps are left out."""

    traces: Traces
    builder: type[ScheduleBuilder] = ScheduleBuilder

    def __call__(self, module: Module) -> Module:
        made = self.builder(module, intrinsics=INTRINSICS)
        for step in self.traces.get(module.stage, ()):
            try:
                made.replay((step,))
            except UserError:
                continue
        return made.module


def replayed(traces: Traces, builder: type[ScheduleBuilder] = ScheduleBuilder) -> Replayed:
    return Replayed(traces, builder)
