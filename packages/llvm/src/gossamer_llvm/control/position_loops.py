"""Loops over vectors, or groups of vectors, whose variable is the position of the first element in an array.

The elements of a row begin at a position that is read from memory. If a loop counts vectors from 0, each row
adds this position to the address of each array. A loop that counts positions compares with the position after
the last element instead, and uses the addresses of the arrays as they are (counted for a sparse row on Arm
SVE: 9 instructions outside of the loop instead of 15).
"""

from __future__ import annotations

from collections.abc import Set
from typing import Any

import msgspec
from msgspec.structs import replace

from gossamer_ir.arith.affine import Affine, affine_of, distance, expr_of, times
from gossamer_ir.core.build import add, index_var, integer_value, is_nonnegative_integer
from gossamer_ir.core.conditions import TRUE
from gossamer_ir.core.expression_kinds import dtype_of
from gossamer_ir.nodes import (
    Binary,
    Cast,
    Compare,
    Expr,
    For,
    InRange,
    Let,
    Load,
    Monotone,
    Ramp,
    Stmt,
    VScale,
)
from gossamer_ir.traversal.buffer_uses import buffers_read
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.rewrite import rewrite_body
from gossamer_ir.traversal.substitute import substitute_body
from gossamer_ir.traversal.walk import collect
from gossamer_llvm.control.loop_invariants import is_loop_invariant
from gossamer_llvm.emitter.function_emitter import FunctionEmitter
from gossamer_llvm.emitter.operands import Value
from gossamer_llvm.values.division import factor_of_vscale

MAX_POSITION = 1 << 62
"""A bound of positions, exclusive: a position plus the lanes of a vector does not wrap."""


class PositionLoop(msgspec.Struct, frozen=True):
    """A loop whose variable is the position of an iteration: `first` in the first one, and `step * vscale`
    more in each that follows. `end` is the position after the last element, `name` that of the variable."""

    name: str
    first: Expr
    end: Expr
    step: int
    body: tuple[Stmt, ...]


def position_loop(
    emitter: FunctionEmitter, loop: For, *, limit: Expr, step: int, mask: Compare | None = None
) -> PositionLoop | None:
    """Return a loop over `limit` elements, `step * vscale` in each iteration, with positions as its variable.
    None if the vectors of an iteration do not share a position, or the variable has another use than in them
    and in the mask of the loop."""
    body = _with_values_of_lets(loop.body, emitter.info.unchanging)
    ramps = [ramp for ramp in collect(Ramp, *body) if loop.var in free_vars(ramp.base)]
    moved = times(affine_of(index_var(loop.var)), Affine({VScale(): step}, 0))
    parts = {
        ramp: _split_position(affine_of(ramp.base) - moved)
        for ramp in ramps
        if mask is None or ramp != mask.lhs
    }
    starts = {start for start, _ in parts.values()}
    if len(starts) != 1:
        return None
    (start,) = starts
    first, end = expr_of(start), expr_of(start + affine_of(limit))
    loads = set(collect(Load, limit))
    for position in (first, end):
        # The limit was evaluated before the loop, so these loads cannot fail there.
        if not loads.issuperset(collect(Load, position)) or not is_loop_invariant(
            emitter, position, loop
        ):
            return None
        if not _is_position(emitter, position):
            return None
    name = f"{loop.var} position"
    new = rewrite_body(body, _to_positions(name, {ramp: part for ramp, (_, part) in parts.items()}))
    if loop.var in free_vars(*_without_mask(new, mask)):
        return None
    return PositionLoop(name, first, end, step, new)


def group_loop(emitter: FunctionEmitter, loop: For) -> PositionLoop | None:
    """Return a loop with an iteration for each whole group of vectors, with positions as its variable; None
    for any other loop."""
    if not emitter.module.target_info.is_scalable or integer_value(loop.start) != 0:
        return None
    match loop.extent:
        case Binary(op="floordiv", lhs=limit, rhs=divisor):
            step = factor_of_vscale(divisor)
            return None if step is None else position_loop(emitter, loop, limit=limit, step=step)
    return None


def emit_group_loop(
    emitter: FunctionEmitter, loop: For, positions: PositionLoop, *, suffix: str
) -> None:
    """Emit a loop that runs as long as a whole group is left; `suffix` is the metadata of its branch. Code
    after it has the position at which the remaining elements begin."""
    builder = emitter.builder
    first, end = first_position(emitter, positions), emitter.expr(positions.end)
    group = emitter.expr(expr_of(Affine({VScale(): positions.step}, 0)))
    # The difference does not wrap: the end is not negative.
    last = builder.value(f"sub {end.typed}, {group.text}")
    before, inside, latch, outside = builder.block, *(builder.new_block() for _ in range(3))
    some = builder.value(f"icmp sle {first.typed}, {last}")
    builder.enter_loop()
    builder.branch(some, inside, outside)
    builder.begin(inside)
    following = builder.forward()
    var = builder.value(f"phi i64 [ {first.text}, %{before} ], [ {following}, %{latch} ]")
    emitter.vars.bind(positions.name, Value(var, "int64"), depth=builder.loop_depth)
    emitter.body(positions.body)
    builder.fall_into(latch)
    builder.define(following, f"add nuw nsw i64 {var}, {group.text}")
    is_next = builder.value(f"icmp sle i64 {following}, {last}")
    builder.branch(is_next, inside, outside, suffix=suffix)
    builder.leave_loop()
    builder.begin(outside)
    rest = builder.value(f"phi i64 [ {first.text}, %{before} ], [ {following}, %{latch} ]")
    assert isinstance(loop.extent, Binary)
    # A negative limit has a negative number of groups, but the loop leaves its variable as it is.
    if _is_length(emitter, loop.extent.lhs):
        groups = times(affine_of(loop.extent), Affine({VScale(): positions.step}, 0))
        emitter.available.add_position(affine_of(positions.first) + groups, Value(rest, "int64"))


def first_position(emitter: FunctionEmitter, positions: PositionLoop) -> Value:
    """Return the first position of a loop: where a loop over groups has ended, or as it is computed."""
    return emitter.available.position(affine_of(positions.first)) or emitter.expr(positions.first)


def _split_position(form: Affine) -> tuple[Affine, Affine]:
    """Return the start of the row in a position, and the distance in it from the first vector."""
    vectors: dict[Expr, int] = {}
    start: dict[Expr, int] = {}
    for atom, by in form.terms.items():
        (vectors if isinstance(atom, VScale) else start)[atom] = by
    return Affine(start, 0), Affine(vectors, form.constant)


# Other statements: stay, with the values of the lets before them.
def _with_values_of_lets(body: tuple[Stmt, ...], unchanging: Set[str]) -> tuple[Stmt, ...]:
    """Return a body in which the integers that lets bind are written out, unless memory that they are read
    from may change."""
    for number, stmt in enumerate(body):
        if (
            isinstance(stmt, Let)
            and stmt.var.dtype == "int64"
            and buffers_read(stmt.value) <= unchanging
        ):
            rest = substitute_body(body[number + 1 :], {stmt.var.name: stmt.value})
            return (*body[:number], *_with_values_of_lets(rest, unchanging))
    return body


def _to_positions(name: str, distances: dict[Ramp, Affine]) -> Any:
    """Return the rule that makes ramps begin at a distance from a position."""

    def rule(node: Any) -> Ramp | None:
        if isinstance(node, Ramp) and node in distances:
            return replace(node, base=add(index_var(name), expr_of(distances[node])))
        return None

    return rule


def _without_mask(body: tuple[Stmt, ...], mask: Compare | None) -> tuple[Stmt, ...]:
    return rewrite_body(body, lambda node: TRUE if node == mask else None)


def _is_position(emitter: FunctionEmitter, value: Expr) -> bool:
    """Return whether a value is computed without wrapping, is not negative, and below `MAX_POSITION`."""
    form = affine_of(value)
    if emitter.available.position(form) is not None:
        return True
    if (
        emitter.info.overflow is None
        or emitter.info.overflow.unwrapped_bound(value) >= MAX_POSITION
    ):
        return False
    terms = (by > 0 and _is_nonnegative(emitter, atom) for atom, by in form.terms.items())
    return bool(form.terms) and form.constant >= 0 and all(terms)


def _is_nonnegative(emitter: FunctionEmitter, atom: Expr) -> bool:
    load = _element(atom)
    if load is not None:
        interval = emitter.info.facts.last(load.buffer, InRange)
        return interval is not None and is_nonnegative_integer(interval.low)
    return emitter.info.overflow is not None and emitter.info.overflow.is_nonnegative(atom)


def _is_length(emitter: FunctionEmitter, limit: Expr) -> bool:
    """Return whether a limit is the distance between two elements of an array whose values do not decrease.

    Both are loaded, so their indices are in bounds, and the difference of the indices is a true one."""
    form = affine_of(limit)
    loads = {by: _element(atom) for atom, by in form.terms.items()}
    upper, lower = loads.get(1), loads.get(-1)
    if len(form.terms) != 2 or form.constant or upper is None or lower is None:
        return False
    if upper.buffer != lower.buffer or not emitter.info.facts.holds(upper.buffer, Monotone):
        return False
    (*outer, at), (*other, below) = upper.indices, lower.indices
    between = distance(at, below)
    return outer == other and between is not None and between >= 0


def _element(atom: Expr) -> Load | None:
    """Return the element that an atom is, converted to int64 or not."""
    value = atom.value if isinstance(atom, Cast) and atom.dtype == "int64" else atom
    return value if isinstance(value, Load) and dtype_of(value) in ("int32", "int64") else None
