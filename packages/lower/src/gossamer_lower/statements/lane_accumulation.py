"""Accumulations of vectors into elements that lanes may share, one lane after another."""

from __future__ import annotations

from collections.abc import Callable

from gossamer_ir.analysis.lane_projection import in_lane, lane_count, lanes_of_access
from gossamer_ir.analysis.statements.atomic_accumulation import ATOMIC_OPS
from gossamer_ir.analysis.statements.reductions import match_reduction
from gossamer_ir.core.build import ONE, ZERO, index_var
from gossamer_ir.core.dtypes import DType
from gossamer_ir.core.expression_kinds import dtype_of, has_lanes
from gossamer_ir.nodes import (
    Allocate,
    Atomic,
    Buffer,
    Expr,
    For,
    If,
    Lanes,
    Load,
    Ramp,
    Stmt,
    Store,
)
from gossamer_ir.traversal.names import Namer


def accumulate_by_lane(
    store: Store, namer: Namer, step: Callable[[Atomic], Stmt] = lambda atomic: atomic
) -> tuple[Stmt, ...] | None:
    """Return a store `X[i] = X[i] op value` of vectors as a loop over the lanes; None for any other store.

    `step` makes the statement for one lane. The terms of all lanes are computed as vectors before the loop.
    """
    reduction, lanes = match_reduction(store), lanes_of_access(store)
    if reduction is None or lanes is None or reduction.op not in ATOMIC_OPS:
        return None
    lane = index_var(namer.fresh("lane"))
    before: list[Stmt] = []

    def kept_lane(vector: Expr) -> Expr:
        kept = Buffer(
            namer.fresh(f"{store.buffer}_lanes"),
            (lane_count(lanes),),
            DType.parse(dtype_of(vector)).scalar,
            scope="local",
        )
        before.extend((Allocate(kept), Store(kept.name, (_all_lanes(lanes),), vector)))
        return Load(kept.name, (lane,), kept.dtype)

    def index_in_lane(index: Expr) -> Expr:
        if not has_lanes(index):
            return index
        return in_lane(index, lane) if isinstance(index, Ramp) else kept_lane(index)

    at = tuple(index_in_lane(index) for index in store.indices)
    made = step(Atomic(reduction.op, store.buffer, at, kept_lane(reduction.value)))
    if store.predicate is not None:
        made = If(kept_lane(store.predicate), (made,))
    return (*before, For(lane.name, ZERO, lane_count(lanes), (made,)))


def _all_lanes(lanes: Lanes) -> Ramp:
    return Ramp(ZERO, ONE, lanes)
