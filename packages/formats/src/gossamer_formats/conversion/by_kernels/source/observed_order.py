"""The order of elements that declarations do not tell: a kernel compares each with the one before."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gossamer_formats.conversion.by_kernels.kernels.kernel_call import ArrayArgument, run_kernel
from gossamer_formats.conversion.by_kernels.kernels.loop_nest import wrap_in_nest
from gossamer_formats.conversion.by_kernels.kernels.statements import (
    compare,
    define_local,
    let,
    load_local,
    logical_and,
    logical_or,
    loop,
    select,
    store,
    store_local,
    when,
)
from gossamer_formats.conversion.by_kernels.recording.array_scalars import has_flag
from gossamer_formats.conversion.by_kernels.source.element_loop import ElementLoop
from gossamer_formats.conversion.by_kernels.source.element_order import (
    UNKNOWN,
    ElementOrder,
    NextDigit,
    without_repetitions,
)
from gossamer_formats.conversion.destination.inverse_map import logical_var
from gossamer_ir.core.build import ONE, ZERO, add, floordiv, index, index_var, mul, sub
from gossamer_ir.nodes import (
    Allocate,
    Buffer,
    Const,
    Expr,
    For,
    Let,
    Load,
    Select,
    Stmt,
    Store,
    Var,
)
from gossamer_ir.traversal.substitute import resolve
from gossamer_machine.machine import Machine

FLAGS = "FLAGS"
"""The array in which a lane stores 1 if an element does not follow the one before."""

FLAG_DTYPE = "int32"
"""As wide as most indices, so that the comparison of as many lanes is the mask of a selection."""

_SEEN = "SEEN"
"""The flags so far, in a register: stores with a mask take 20 times as long on CPUs without AVX-512."""


def observed_order(order: ElementOrder, elements: ElementLoop, machine: Machine) -> ElementOrder:
    """Return the order of elements that may be repeated, or in another order than that of the loops: all that
    is known is found by comparing them.

    Only lexicographic orders are recognized.
    """
    dimensions = without_repetitions([digit.dimension for digit in order.digits])
    if not dimensions or len(set(dimensions)) < len(dimensions):
        return UNKNOWN
    if not _is_ascending(elements, dimensions, lanes=machine.lanes(FLAG_DTYPE)):
        return UNKNOWN
    return ElementOrder(
        tuple(NextDigit(dimension, ascends=True) for dimension in dimensions), are_distinct=True
    )


def _is_ascending(elements: ElementLoop, dimensions: Sequence[int], *, lanes: int) -> bool:
    """Return whether elements are distinct and sorted by logical coordinates in an order.

    More lanes than a register has would be compared in several, whose masks LLVM packs into one.
    """
    recorder = elements.arguments.recorder
    in_vectors = _compare_in_vectors(elements, dimensions, count=index(lanes))
    body = in_vectors or _compare_in_turn(elements, dimensions)
    flags = recorder.compute(np.zeros, lanes, FLAG_DTYPE)
    argument = ArrayArgument(flags, FLAG_DTYPE, (index(lanes),))
    run_kernel(recorder, body, {**elements.arguments.by_name, FLAGS: argument})
    return not recorder.decide(has_flag, flags)


def _compare_in_turn(elements: ElementLoop, dimensions: Sequence[int]) -> list[Stmt]:
    """Return the kernel that keeps the coordinates of the element before in local variables."""
    starts = [*define_local("UNSORTED", ZERO)]
    for dimension in dimensions:
        starts += define_local(_last_name(dimension), index(-1))
    # No branch: what is stored depends on all elements.
    is_after = _is_after(
        [logical_var(dimension) for dimension in dimensions],
        [load_local(_last_name(dimension)) for dimension in dimensions],
    )
    unsorted = select(is_after, load_local("UNSORTED"), ONE)
    updates = [
        store_local(_last_name(dimension), logical_var(dimension)) for dimension in dimensions
    ]
    loops = _around_first(elements, [store_local("UNSORTED", unsorted), *updates])
    return [*starts, *loops, store(FLAGS, ZERO, load_local("UNSORTED"), FLAG_DTYPE)]


def _around_first(elements: ElementLoop, body: Sequence[Stmt]) -> tuple[Stmt, ...]:
    """Return the loops around statements for the first one of elements that are known to be sorted if the
    first ones are: those of a block."""
    if elements.listed is None:
        return elements.around(body)
    single = {f"x_{name}" for name in elements.listed.repeated}
    nest = [
        let(stmt.var, ZERO) if isinstance(stmt, For) and stmt.var in single else stmt
        for stmt in elements.nest
    ]
    return wrap_in_nest(nest, body)


def _compare_in_vectors(
    elements: ElementLoop, dimensions: Sequence[int], *, count: Const
) -> list[Stmt] | None:
    """Return the kernel that loads each element and the one before, `count` pairs at once; None unless all
    elements are visited by one loop that only binds variables."""
    match elements.nest:
        case (For(start=start) as outer, *bindings) if start == ZERO:
            pass
        case _:
            return None
    if elements.condition is not None or not all(isinstance(stmt, Let) for stmt in bindings):
        return None
    chunk, lane, pair = index_var("chunk"), index_var("lane"), index_var("pair")
    first_lane, last_lane = index_var("first_lane"), index_var("last_lane")
    pairs = sub(outer.extent, ONE)
    chunks = floordiv(pairs, count)
    values = {binding.var.name: binding.value for binding in bindings if isinstance(binding, Let)}

    def compare_next(before: Expr, flags: str, at: Expr) -> Store:
        first, second = ({**values, outer.var: at} for at in (before, add(before, ONE)))
        is_after = _is_after(
            [resolve(logical_var(dimension), second) for dimension in dimensions],
            [resolve(logical_var(dimension), first) for dimension in dimensions],
        )
        flag = Select(is_after, Load(flags, (at,), FLAG_DTYPE), Const(FLAG_DTYPE, "1"))
        return Store(flags, (at,), flag)

    def in_lanes(name: Var, stmt: Stmt) -> For:
        return For(name.name, ZERO, count, (stmt,), kind="vectorized")

    in_chunk = in_lanes(lane, compare_next(add(mul(chunk, count), lane), _SEEN, lane))
    loops: list[Stmt] = [
        Allocate(Buffer(_SEEN, (count,), FLAG_DTYPE, scope="local")),
        in_lanes(first_lane, Store(_SEEN, (first_lane,), Const(FLAG_DTYPE, "0"))),
        loop(chunk.name, ZERO, chunks, [in_chunk]),
        in_lanes(last_lane, Store(FLAGS, (last_lane,), Load(_SEEN, (last_lane,), FLAG_DTYPE))),
        loop(pair.name, mul(chunks, count), pairs, [compare_next(pair, FLAGS, ZERO)]),
    ]
    # The quotient of -1 is negative.
    return [when(compare("gt", outer.extent, ONE), loops)]


def _last_name(dimension: int) -> str:
    return f"LAST{dimension}"


def _is_after(coordinates: Sequence[Expr], others: Sequence[Expr]) -> Expr:
    """Return the condition that coordinates follow others in the lexicographic order.

    >>> from gossamer_ir.script import print_expr
    >>> print_expr(_is_after([index_var("l1"), index_var("l0")], [index_var("k1"), index_var("k0")]))
    'l1 > k1 or l1 == k1 and l0 > k0'
    """
    after = compare("gt", coordinates[0], others[0])
    if len(coordinates) == 1:
        return after
    is_equal = compare("eq", coordinates[0], others[0])
    return logical_or(after, logical_and(is_equal, _is_after(coordinates[1:], others[1:])))
