"""Sums over the elements of any format, on machines that run grids of threads.

The result is dense, so each of its elements has a thread, which adds up the terms in a register. Formats that
other rules know have better schedules; this one keeps the others from running in one thread.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from gossamer_ir.nodes import Module
from gossamer_machine import Grid
from gossamer_schedule.rules.decisions.grids.grid_threads import (
    block_threads,
    run_rows_and_features,
)
from gossamer_schedule.rules.patterns.dense_sums import DenseSums, dense_sums
from gossamer_schedule.rules.schedule_rule import PatternMatch, RuleContext, schedule_rule
from gossamer_schedule.rules.steps.trace_builder import TraceBuilder

MAX_LAYERS = 65535
"""The blocks that a grid has along its third axis at most."""

_FASTER = "it shares loads or work among threads, or multiplies by tensor cores"


@schedule_rule(
    pattern="`out[i, ..., k] = out[i, ..., k] op ...` at the places of dense axes, over axes of any kinds",
    programs="SpMM and SpMV over SR-BCRS with unused slots, N:M inside blocks, V:N:M and other trees of axes",
    schedule="a thread for each element of the result, on machines that run grids of threads",
    after={
        "grid_rows": _FASTER,
        "grid_n_m_spmm": _FASTER,
        "grid_block_spmm": _FASTER,
    },
    is_for_grids=True,
)
def grid_dense_rows(module: Module, context: RuleContext) -> PatternMatch | None:
    """Return the schedule for such sums; None for any other program, or on a CPU."""
    grid = context.machine.grid
    sums = None if grid is None else dense_sums(module)
    loops = None if sums is None else _element_loops(sums)
    if grid is None or sums is None or loops is None:
        return None
    trace = context.new_trace()
    init = trace.lowered_init(sums.block, elements=sums.init_loops)
    trace.reorder(*loops.names, *sums.terms)
    if sums.has_elements:
        trace.accumulate_locally(
            sums.block, buffer=sums.output, holder=loops.names[-1], reduction=sums.terms[0]
        )
        trace.decide("each element in a register", "a thread stores it once, after the last term")
    _run_elements(trace, loops, grid=grid)
    if sums.init_loops:
        init_loops = loops.with_names(init.loops)
        trace.reorder(*init_loops.names, *(init.loops.get(name) for name in sums.terms))
        _run_elements(trace, init_loops, grid=grid)
    return PatternMatch(sums.text, trace)


class _ElementLoops(NamedTuple):
    """The loops that select an element, by how they run: one that has blocks of its own, if there is one,
    those over rows and over features, if these are others, and those that a thread runs."""

    layer: str | None
    row: str
    feature: str | None
    serial: tuple[str, ...]
    features: int | None
    """The extent of `feature` if it is constant."""

    @property
    def names(self) -> tuple[str, ...]:
        """All loops, outermost first."""
        return (*filter(None, (self.layer, self.row, self.feature)), *self.serial)

    def with_names(self, names: Mapping[str, str]) -> _ElementLoops:
        """Return the loops with other names."""
        return self._replace(
            layer=None if self.layer is None else names[self.layer],
            row=names[self.row],
            feature=None if self.feature is None else names[self.feature],
            serial=tuple(names[name] for name in self.serial),
        )


def _element_loops(sums: DenseSums) -> _ElementLoops | None:
    """Return the loops that select an element; None if there is one element, or none."""
    extents = dict(zip(sums.places, sums.extents, strict=True))
    # Lowering drops loops of one iteration from indices: they select nothing.
    several = [name for name in sums.places if extents[name] != 1]
    if not several or 0 in sums.extents:
        return None
    row, *inner = several
    feature = inner.pop() if inner else None
    layer = next((name for name in inner if (extents[name] or MAX_LAYERS + 1) <= MAX_LAYERS), None)
    serial = tuple(name for name in sums.places if name not in (layer, row, feature))
    features = None if feature is None else extents[feature]
    return _ElementLoops(layer, row, feature, serial, features)


def _run_elements(trace: TraceBuilder, loops: _ElementLoops, *, grid: Grid) -> None:
    if loops.layer is not None:
        trace.record.bind(loop=loops.layer, thread="blockIdx.z")
    if loops.feature is not None:
        run_rows_and_features(
            trace, loops.row, feature=loops.feature, features=loops.features, grid=grid
        )
        return
    blocks, thread = trace.split(loops.row, factors=(None, block_threads(grid)))
    trace.record.bind(loop=blocks, thread="blockIdx.x")
    trace.record.bind(loop=thread, thread="threadIdx.x")
    trace.decide("a thread for each element", "the elements are independent of each other")
