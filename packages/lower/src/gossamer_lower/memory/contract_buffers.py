"""Allocates each buffer in the innermost body that contains all its accesses, and contracts it (array
contraction) to the elements that are live there.

A buffer can be made private to a loop if different iterations access different elements, such as those of
different rows. Each index is split into a part that is invariant in the body and a part that varies. If
all accesses agree in the invariant part (`index_ranges_of`), it is dropped, and the range of the varying part
becomes the extent. A buffer that a body allocates already stays inside that body.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from msgspec.structs import replace

from gossamer_ir.analysis.accesses.buffer_accesses import accesses
from gossamer_ir.analysis.invariants import buffers_written_in, invariant_facts
from gossamer_ir.analysis.proofs.symbolic_bounds import constants_of, ends_of
from gossamer_ir.analysis.statements.thread_axes import is_block_axis
from gossamer_ir.arith.affine import Affine, affine_of, expr_of
from gossamer_ir.arith.nonaffine_bounds import strip_widening
from gossamer_ir.core.build import ONE, ZERO, add, index, index_var, integer_value
from gossamer_ir.dependence.independence import are_unshared
from gossamer_ir.dependence.mixed_radix import is_positive
from gossamer_ir.facts.fact_index import fact_index
from gossamer_ir.nodes import (
    Allocate,
    Binary,
    Buffer,
    Expr,
    For,
    Function,
    If,
    Load,
    Module,
    Monotone,
    Node,
    Stmt,
    Var,
)
from gossamer_ir.traversal.access_types import ELEMENT_ACCESSES, ELEMENT_NODES
from gossamer_ir.traversal.buffer_definitions import all_buffers, allocations
from gossamer_ir.traversal.buffer_uses import buffers_named, buffers_read
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.rewrite import rewrite_body
from gossamer_ir.traversal.statement_queries import allocation_of
from gossamer_ir.traversal.substitute import substitute
from gossamer_ir.traversal.walk import collect, stmts
from gossamer_lower.bounds_checks.access_checks import with_bounds_checks
from gossamer_lower.lowering_pass import lowering_pass, map_functions
from gossamer_lower.memory.index_ranges import Interval, contracted_indices, index_ranges_of
from gossamer_lower.statements.rebuild import with_bodies

Intervals: TypeAlias = list[Interval | None]
"""One interval for each dimension; None for a dimension that is not contracted."""


@lowering_pass(
    takes=("loop",),
    without=("blocks",),
    removes=("declared scratch",),
    after={
        "lower_blocks": "only the final position of an init tells where a buffer is first written"
    },
    before={"insert_bounds_checks": "the checks are those of indices into the small buffers"},
)
def contract_buffers(module: Module) -> Module:
    """Allocate buffers where they are live, with the extents that are live there.

    >>> from gossamer_testkit.examples import program
    >>> from gossamer_testkit.show import body_text
    >>> before = program('''
    ... Z = T.decl_buffer((n,), "float32", scope="local")
    ... for i in T.serial(n):
    ...     Z[i] = X[i] * 2.0
    ...     Y[i] = Z[i] + X[i]
    ... ''')
    >>> print(body_text(contract_buffers(before)))
    for i in T.serial(n):
        Z = T.alloc_buffer((1,), "float32", scope="local")
        Z[0] = X[i] * 2.0
        Y[i] = Z[0] + X[i]
    """
    return map_functions(module, _contract_function)


def _contract_function(function: Function) -> Function:
    planned = _with_contracted_buffers(function)
    # Planned first without checks, because most buffers are accessed in bounds: the plan tells
    # which few buffers need checks of the declared shape. With the checks in place, contraction
    # runs again.
    unchecked = _buffers_to_check(function, planned)
    guarded = with_bounds_checks(function, unchecked) if unchecked else function
    return planned if guarded is function else _with_contracted_buffers(guarded)


def _with_contracted_buffers(function: Function) -> Function:
    body = _contract_body(function.body, function)
    for buffer in function.buffers:
        if buffer.handle is None and isinstance(buffer, Buffer):
            body = _body_with_allocation(body, buffer, function)
    # Buffers with a handle belong to the caller, who has allocated them.
    kept = tuple(declared for declared in function.buffers if declared.handle is not None)
    return replace(function, body=body, buffers=kept)


def _buffers_to_check(function: Function, planned: Function) -> set[str]:
    """Return the contracted buffers that may be accessed out of bounds. Such an access must stop the program
    even if it is in bounds of the smaller buffer, so the checks are inserted before contraction."""
    before, after = _allocated_shapes(function), _allocated_shapes(planned)
    shrunk = {name: shape for name, shape in before.items() if after.get(name) != shape}
    if not shrunk:
        return set()
    loops = {stmt.var: stmt for stmt in stmts(function.body) if isinstance(stmt, For)}
    # A buffer that is searched keeps its shape: see `index_ranges_of`.
    return {
        node.buffer
        for node in collect(ELEMENT_ACCESSES, *function.body)
        if node.buffer in shrunk and not _is_inside(node.indices, shrunk[node.buffer], loops)
    }


def _allocated_shapes(function: Function) -> dict[str, tuple[Expr, ...]]:
    """Return the shapes of the buffers that a function allocates."""
    return {
        buffer.name: buffer.shape
        for buffer in all_buffers(function)
        if isinstance(buffer, Buffer) and not buffer.handle
    }


def _is_inside(
    indices: tuple[Expr, ...], shape: tuple[Expr, ...], loops: Mapping[str, For]
) -> bool:
    """Return whether an access is in bounds for a reason that needs no prover, as most are."""
    pairs = zip(indices, shape, strict=True)
    return all(
        _is_below(at, size, loops) or _is_var_of_loop_over(at, size, loops) for at, size in pairs
    )


def _is_below(at: Expr, size: Expr, loops: Mapping[str, For]) -> bool:
    """Return whether the ranges of loops bound an index by constants that are in bounds. Overflow of
    intermediate results is harmless: the index is a sum of products, which is correct modulo 2^64."""

    def values_of(atom: Expr) -> range | None:
        loop = loops.get(atom.name) if isinstance(atom, Var) else None
        return None if loop is None else constants_of(loop)

    count = integer_value(size)
    ends = None if count is None else ends_of(affine_of(at), values_of)
    return ends is not None and ends[0] >= 0 and ends[1] < (count or 0)


def _is_var_of_loop_over(at: Expr, size: Expr, loops: Mapping[str, For]) -> bool:
    """Return whether an index is the variable of a loop over the dimension. A size that is read from memory
    does not count: it may change between the allocation and the loop."""
    loop = loops.get(at.name) if isinstance(at, Var) else None
    if loop is None or loop.start != ZERO:
        return False
    return loop.extent == size and not buffers_read(size)


def _contract_body(body: tuple[Stmt, ...], function: Function) -> tuple[Stmt, ...]:
    """Return the body with its allocations, and those of inner bodies, moved to where they are live."""
    result: tuple[Stmt, ...] = ()
    # From the last statement to the first:
    # an allocation needs the statements after it, already rewritten.
    for stmt in reversed(body):
        buffer = allocation_of(stmt)
        if buffer is not None:
            result = _body_with_allocation(result, buffer, function)
        else:
            result = (with_bodies(stmt, lambda inner: _contract_body(inner, function)), *result)
    return result


# Other statements: stay, or only their bodies change.
def _body_with_allocation(
    body: tuple[Stmt, ...],
    buffer: Buffer,
    function: Function,
    *,
    intervals: Intervals | None = None,
) -> tuple[Stmt, ...]:
    """Return the body with the buffer allocated where it is live; `intervals` are its own in the body."""
    users = [number for number, stmt in enumerate(body) if _is_named((stmt,), buffer.name)]
    if not users:
        return body
    first, last = users[0], users[-1] + 1
    only = body[first]
    if len(users) == 1 and isinstance(only, For) and _may_allocate(only, buffer):
        inside = index_ranges_of(buffer, only.body, function)
        inner = _private_body(only, buffer, inside, function)
        if inner is not None:
            placed = replace(only, body=inner)
            return (*body[:first], placed, *body[last:])
    # Moving the buffer into the only branch that uses it saves the allocation if the branch
    # is not taken.
    if len(users) == 1 and isinstance(only, If) and _is_in_one_side(only, buffer.name):
        sides = (
            _body_with_allocation(only.then_body, buffer, function),
            _body_with_allocation(only.else_body, buffer, function),
        )
        return (*body[:first], If(only.condition, *sides), *body[last:])
    live = body[first:last]
    # Intervals that were computed for the enclosing loop body are valid here only if it is the same
    # body: fewer statements may allow a tighter interval.
    if intervals is None or len(live) < len(body):
        intervals = index_ranges_of(buffer, live, function)
    compacted, live = _contract_buffer(buffer, live, intervals)
    return (*body[:first], Allocate(compacted), *live, *body[last:])


def _may_allocate(loop: For, buffer: Buffer) -> bool:
    """Return whether each iteration of a loop may have a buffer of its own. Not that of a vectorized or
    unrolled loop: an allocation has no vector form, and each copy of an unrolled body would allocate. Each
    thread of a grid has local memory, and each block shared memory and fragments; other memory of a grid is
    allocated by the host."""
    if loop.thread is None:
        return loop.kind in ("serial", "parallel")
    is_of_blocks = is_block_axis(loop.thread)
    return buffer.scope == "local" or (buffer.scope in ("shared", "fragment") and is_of_blocks)


def _is_named(nodes: Iterable[Node], name: str) -> bool:
    """Return whether the buffer is named, also by a guard, which may stand far before the access."""
    return name in buffers_named(*nodes)


def _is_in_one_side(stmt: If, name: str) -> bool:
    """Return whether exactly one branch of an `If` names the buffer."""
    sides = (stmt.then_body, stmt.else_body)
    using = [_is_named(side, name) for side in sides]
    return using.count(True) == 1 and not _is_named((stmt.condition,), name)


def _private_body(
    loop: For, buffer: Buffer, inside: Intervals, function: Function
) -> tuple[Stmt, ...] | None:
    """Return the body of a loop with the buffer allocated inside it; None if the buffer has to stay outside.

    `inside` are the intervals in the body.
    """
    if _is_private(loop, buffer, inside, function):
        return _body_with_allocation(loop.body, buffer, function, intervals=inside)
    unknown = [dimension for dimension, interval in enumerate(inside) if interval is None]
    if not unknown or not _is_private_as_it_is(loop, buffer, function):
        return None
    # An inner loop may select an interval that this one does not have, such as one fiber of a tree of axes.
    # Without such a loop, each iteration would allocate the whole dimension.
    inner = _body_with_allocation(loop.body, buffer, function, intervals=inside)
    (allocated,) = (
        allocation for allocation in allocations(stmts(inner)) if allocation.name == buffer.name
    )
    is_contracted = all(buffer.shape[dimension] not in allocated.shape for dimension in unknown)
    return inner if is_contracted else None


def _is_private_as_it_is(loop: For, buffer: Buffer, function: Function) -> bool:
    """Return whether different iterations access different elements of the whole buffer."""
    listed = list(accesses(loop.body, buffers={buffer.name}))
    return are_unshared(
        listed, loop, changing=buffers_written_in(loop.body, function), function=function
    )


def _is_private(loop: For, buffer: Buffer, intervals: Intervals, function: Function) -> bool:
    """Return whether different iterations access different elements, along the dimensions for which the
    interval of one iteration is known."""
    # An index `i + c` alone makes the iterations disjoint, so the other dimensions need no proof.
    if any(interval is not None and _is_var(interval, loop) for interval in intervals):
        return True
    # So does the segment of an iteration, by a fact alone: a proof from the accesses takes milliseconds.
    if any(
        interval is not None and _is_segment(interval, loop, function) for interval in intervals
    ):
        return True
    varying = [
        dimension
        for dimension, interval in enumerate(intervals)
        if interval and _varies_with_loop(interval, loop)
    ]
    if not varying:
        return False
    # The indices of the other dimensions are of no use to tell iterations apart.
    shifted = [
        replace(access, indices=tuple(access.indices[dimension] for dimension in varying))
        for access in accesses(loop.body, buffers={buffer.name})
    ]
    changing = buffers_written_in(loop.body, function)
    return are_unshared(shifted, loop, changing=changing, function=function)


def _is_var(interval: Interval, loop: For) -> bool:
    """Return whether an index is the loop variable plus a loop-invariant offset."""
    is_one = interval.low == interval.high and not interval.lengths
    return is_one and interval.fixed.terms == {index_var(loop.var): 1}


def _is_segment(interval: Interval, loop: For, function: Function) -> bool:
    """Return whether an index is between the offset of an iteration and that of the next one, and offsets
    never decrease."""
    if len(interval.fixed.terms) != 1:
        return False
    ((atom, factor),) = interval.fixed.terms.items()
    offset = strip_widening(atom)
    if factor != 1 or not isinstance(offset, Load) or offset.predicate is not None:
        return False
    loop_var, following = index_var(loop.var), add(index_var(loop.var), ONE)
    if offset.indices != (loop_var,) or not _is_monotone(offset.buffer, function):
        return False
    end = affine_of(substitute(atom, {loop.var: following}))
    return end - affine_of(atom) in interval.lengths


def _is_monotone(buffer_name: str, function: Function) -> bool:
    return fact_index(invariant_facts(function)).holds(buffer_name, Monotone)


def _varies_with_loop(interval: Interval, loop: For) -> bool:
    """Return whether the invariant part of the index depends on the loop variable."""
    return any(loop.var in free_vars(atom) for atom in interval.fixed.terms)


MAX_EXCESS = 1 << 12
"""The largest excess of a contracted dimension over its extent, in elements. Ranges include masked-off lanes,
which need no mask if the elements exist, and accesses out of bounds, which a guard finds after allocation."""


def _is_worth_contracting(interval: Interval | None, extent: Expr) -> bool:
    """Return whether contraction does not make a dimension much longer than it is."""
    # A symbolic length is that of a loop or of a condition, which the masked lanes do not exceed.
    if interval is None or interval.lengths:
        return True
    size = max(integer_value(extent) or 0, 0)
    return interval.high - interval.low < size + MAX_EXCESS


def _size_of(length: Affine) -> Expr:
    """Return the extent of a dimension for the length of a loop."""
    if is_positive(length):
        return expr_of(length)
    # A loop with a negative extent has no iteration, but an allocation of negative size is an error.
    return Binary("max", expr_of(length), ZERO)


def _contract_buffer(
    buffer: Buffer, live: tuple[Stmt, ...], intervals: Intervals
) -> tuple[Buffer, tuple[Stmt, ...]]:
    pairs = list(zip(buffer.shape, intervals, strict=True))
    intervals = [
        interval if _is_worth_contracting(interval, extent) else None for extent, interval in pairs
    ]
    shape: list[Expr] = []
    for extent, interval in zip(buffer.shape, intervals, strict=True):
        if interval is None:
            shape.append(extent)
        elif interval.lengths:
            shape.append(_size_of(interval.lengths[0]))
        # An interval of one element drops the dimension, and `contracted_indices` drops its index.
        elif interval.high > interval.low:
            shape.append(index(interval.high - interval.low + 1))

    def shrink(node: Node) -> Any | None:
        if not isinstance(node, ELEMENT_NODES) or node.buffer != buffer.name:
            return None
        return replace(node, indices=contracted_indices(node.indices, intervals))

    small = replace(buffer, shape=tuple(shape) or (ONE,))
    return small, rewrite_body(live, shrink, leaves=False)
