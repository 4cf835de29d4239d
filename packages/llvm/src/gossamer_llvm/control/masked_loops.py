"""Loops over scalable vectors, the last of which is masked: the mask tells whether there is a next vector.

An instruction that computes a mask of active lanes (`whilelo` of Arm SVE) also sets the flags, so such a
loop needs no counter. Targets without it (`has_lane_masks`) have loops that count.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from gossamer_ir.analysis.lane_projection import lane_count
from gossamer_ir.arith.affine import ONE_FORM, Affine, affine_of
from gossamer_ir.core.build import index_var, integer_value
from gossamer_ir.core.expression_kinds import dtype_of
from gossamer_ir.core.operations import DIVISIONS
from gossamer_ir.nodes import (
    Binary,
    Broadcast,
    Compare,
    Expr,
    For,
    Load,
    Ramp,
    Select,
    Stmt,
    Store,
    VScale,
)
from gossamer_ir.traversal.access_types import READS
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.walk import collect
from gossamer_llvm.control.loop_invariants import is_loop_invariant
from gossamer_llvm.control.position_loops import first_position, position_loop
from gossamer_llvm.emitter.folding import index_constant, mul
from gossamer_llvm.emitter.function_emitter import FunctionEmitter
from gossamer_llvm.emitter.operands import Value
from gossamer_llvm.emitter.types import value_type
from gossamer_llvm.values.masks import active_lanes, is_ascending


class LoopMask(msgspec.Struct, frozen=True):
    """The mask of the vector of an iteration, and the number of elements, up to which it is true."""

    mask: Compare
    limit: Expr


def loop_mask(emitter: FunctionEmitter, loop: For) -> LoopMask | None:
    """Return the mask of a loop with an iteration for each vector of elements from 0 to a limit; None for any
    other loop."""
    if not emitter.module.target_info.has_lane_masks or integer_value(loop.start) != 0:
        return None
    # The sum that rounds the extent up does not wrap if the lanes from the limit on do not.
    for mask in dict.fromkeys(collect(Compare, *loop.body)):
        match mask:
            case Compare(op="lt", lhs=Ramp() as ramp, rhs=Broadcast(value=limit)) if (
                dtype_of(limit) == "int64"
                and _counts_vectors(loop, ramp, limit)
                and is_ascending(emitter, ramp)
                and is_ascending(emitter, replace(ramp, base=limit))
                and is_loop_invariant(emitter, limit, loop)
            ):
                return LoopMask(mask, limit)
    return None


def _counts_vectors(loop: For, ramp: Ramp, limit: Expr) -> bool:
    """Return whether each iteration has the vector of its number, and the extent is the number of vectors
    that hold `limit` elements."""
    if not ramp.lanes.scalable or integer_value(ramp.stride) != 1:
        return False
    lanes = Affine({VScale(): ramp.lanes.count}, 0)
    first = affine_of(Binary("mul", index_var(loop.var), VScale()))
    first_element = Affine({atom: by * ramp.lanes.count for atom, by in first.terms.items()}, 0)
    extent = loop.extent
    if (
        affine_of(ramp.base) != first_element
        or not isinstance(extent, Binary)
        or extent.op != "floordiv"
    ):
        return False
    rounded = affine_of(limit) + lanes - ONE_FORM
    return affine_of(extent.rhs) == lanes and affine_of(extent.lhs) == rounded


def may_run_without_lanes(emitter: FunctionEmitter, loop: For, loop_mask: LoopMask) -> bool:
    """Return whether an iteration in which no lane is active changes nothing and cannot fail: it only
    accumulates in private vectors, by elements that are loaded under the mask."""
    mask, limit = loop_mask.mask, loop_mask.limit
    if integer_value(limit) is not None:
        return False
    # These were evaluated to compute the limit.
    valid = set(collect((Load, Binary), limit))
    return all(_keeps_masked_lanes(emitter, stmt, mask) for stmt in loop.body) and all(
        _cannot_fail(emitter, node, mask) or node in valid
        for node in collect((*READS, Binary), *loop.body)
    )


def _keeps_masked_lanes(emitter: FunctionEmitter, stmt: Stmt, mask: Compare) -> bool:
    match stmt:
        case Store(
            buffer=name, indices=indices, value=Select(condition=condition, if_false=Load() as old)
        ):
            is_same = (old.buffer, old.indices) == (name, indices)
            return condition == mask and is_same and _is_accumulator(emitter, old)
    return False


# Other expressions: those that read memory fail the test of `READS`.
def _cannot_fail(emitter: FunctionEmitter, node: Expr, mask: Compare) -> bool:
    match node:
        case Load():
            return node.predicate == mask or _is_accumulator(emitter, node)
        case Binary():
            return node.op not in DIVISIONS
    return False


def _is_accumulator(emitter: FunctionEmitter, element: Load) -> bool:
    """Return whether an element of a private buffer exists whether or not the loop has an iteration."""
    is_fixed = not free_vars(*element.indices) and not collect(Load, *element.indices)
    return is_fixed and emitter.buffers[element.buffer].private_elements > 0


def emit_masked_loop(
    emitter: FunctionEmitter, loop: For, loop_mask: LoopMask, *, suffix: str
) -> None:
    """Emit a loop that runs as long as its mask is true in the first lane; `suffix` is the metadata of its
    branch.

    A loop that accumulates runs once if there is no element, so that rows need no test whether they are empty
    (two instructions and a branch less for each row; an empty row costs a vector).
    """
    builder, mask = emitter.builder, loop_mask.mask
    counted = _count_positions(emitter, loop, loop_mask)
    entry, inside, latch, outside = (builder.new_block() for _ in range(4))
    builder.enter_loop()
    builder.branch(counted.some, entry, outside)
    builder.begin(entry)
    dtype = dtype_of(mask)
    first = builder.value(active_lanes(emitter, counted.first, counted.bound, dtype))
    builder.fall_into(inside)
    following, next_mask = builder.forward(), builder.forward()
    var = builder.value(f"phi i64 [ {counted.first.text}, %{entry} ], [ {following}, %{latch} ]")
    kind = value_type(dtype)
    current = builder.value(f"phi {kind} [ {first}, %{entry} ], [ {next_mask}, %{latch} ]")
    emitter.vars.bind(counted.name, Value(var, "int64"), depth=builder.loop_depth)
    emitter.vars.masks[mask] = Value(current, dtype)
    emitter.body(counted.body)
    del emitter.vars.masks[mask]
    builder.fall_into(latch)
    builder.define(following, f"add nuw nsw i64 {var}, {counted.step.text}")
    base = mul(emitter, Value(following, "int64"), counted.scale, flags=" nuw nsw")
    builder.define(next_mask, active_lanes(emitter, base, counted.bound, dtype))
    is_active = builder.value(f"extractelement {kind} {next_mask}, i64 0")
    builder.branch(is_active, inside, outside, suffix=suffix)
    builder.leave_loop()
    builder.begin(outside)


class _Counted(msgspec.Struct, frozen=True):
    """The counter of a loop: a variable, which `scale` times is compared with `bound`."""

    name: str
    """The name of the variable."""
    body: tuple[Stmt, ...]
    first: Value
    """The first value of the variable."""
    step: Value
    """The difference of values that follow each other."""
    scale: Value
    bound: Value
    some: str
    """The condition that the loop runs at all."""


def _count_positions(emitter: FunctionEmitter, loop: For, loop_mask: LoopMask) -> _Counted:
    """Return positions in arrays as what a loop counts, or else vectors."""
    mask, limit = loop_mask.mask, loop_mask.limit
    assert isinstance(mask.lhs, Ramp)
    lanes, one = emitter.expr(lane_count(mask.lhs.lanes)), index_constant(1)
    positions = position_loop(emitter, loop, limit=limit, step=mask.lhs.lanes.count, mask=mask)
    body = loop.body if positions is None else positions.body
    may_run = may_run_without_lanes(emitter, replace(loop, body=body), loop_mask)
    if positions is not None:
        first, end = first_position(emitter, positions), emitter.expr(positions.end)
        some = "true" if may_run else emitter.builder.value(f"icmp slt {first.typed}, {end.text}")
        return _Counted(positions.name, body, first, lanes, one, end, some)
    bound = emitter.expr(limit)
    if may_run:
        # A mask below a negative number has all lanes: the numbers of lanes are unsigned.
        bound = Value(emitter.call("i64", "llvm.smax.i64", f"{bound.typed}, i64 0"), bound.dtype)
    some = "true" if may_run else emitter.builder.value(f"icmp sgt {bound.typed}, 0")
    return _Counted(loop.var, body, index_constant(0), one, lanes, bound, some)
