"""Replaces vscale by a constant, for targets without scalable vectors."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from gossamer_ir.analysis.bounds.value_bounds import MAX_VSCALE
from gossamer_ir.analysis.scalable_vectors import has_scalable_vectors
from gossamer_ir.core.build import ONE, ZERO, fold_constants, index
from gossamer_ir.core.dtypes import DType
from gossamer_ir.core.expression_kinds import has_lanes
from gossamer_ir.errors import ArgumentError
from gossamer_ir.nodes import (
    Binary,
    Broadcast,
    Compare,
    Expr,
    LaneReduce,
    Lanes,
    Module,
    Node,
    Ramp,
    Select,
    TransposeReduce,
    VScale,
)
from gossamer_ir.traversal.rewrite import rewrite
from gossamer_lower.lowering_pass import lowering_pass, map_functions


@lowering_pass(
    takes=("loop", "flat"),
    before={"vectorize_loops": "passes before it also prove more for a constant number of lanes"},
)
def lower_vscale(module: Module, *, vscale: int) -> Module:
    """Replace `T.vscale()` by a constant, and scalable vectors by fixed ones. A vector of one lane becomes a
    scalar.

    The result computes what the module computes on a machine with this `vscale`, which is from 1 to 1024.
    Raises `ArgumentError` (`pass.arguments`) for another one.

    >>> from gossamer_testkit.examples import program
    >>> from gossamer_testkit.show import body_text
    >>> scalable = program('''
    ... for i in T.serial(n // (4 * T.vscale())):
    ...     for l in T.vectorized(4 * T.vscale()):
    ...         Y[i * (4 * T.vscale()) + l] = 2.0
    ... ''')
    >>> print(body_text(lower_vscale(scalable, vscale=2)))
    for i in T.serial(n // 8):
        for l in T.vectorized(8):
            Y[i * 8 + l] = 2.0
    """
    if not 1 <= vscale <= MAX_VSCALE:
        raise ArgumentError(
            "pass.arguments",
            f"The pass 'lower_vscale' cannot replace vscale by {vscale}.",
            hint=f"Expected an integer from 1 to {MAX_VSCALE}.",
        )
    if not has_scalable_vectors(module):
        return module

    def rule(node: Node) -> Any | None:
        return _with_constant(node, vscale)

    return map_functions(module, lambda function: rewrite(function, rule))


# Other expressions: their parts are replaced.
def _with_constant(node: Node, vscale: int) -> Any | None:
    """Return a node whose children have a constant for vscale with one itself; None if nothing changes."""
    match node:
        case VScale():
            return index(vscale)
        case Lanes(scalable=True):
            return Lanes(node.count * vscale)
        # The extent of a vectorized loop must be a constant, not a product.
        case Binary():
            return fold_constants(node.op, node.lhs, node.rhs)
        case Ramp(lanes=Lanes(count=1)):
            return node.base
        case Broadcast(lanes=Lanes(count=1)):
            return node.value
        case LaneReduce() if not has_lanes(node.value):
            return node.value
        case TransposeReduce() if not has_lanes(node.values[0]):
            return _vector_of(node.values)
    return _with_fixed_dtype(node, vscale)


def _vector_of(values: tuple[Expr, ...]) -> Expr:
    """Return the vector with these scalars in its lanes."""
    lanes = Lanes(len(values))
    numbers = Ramp(ZERO, ONE, lanes)
    first, *rest = (Broadcast(value, lanes) for value in values)
    vector: Expr = first
    for number, value in enumerate(rest, 1):
        is_own = Compare("eq", numbers, Broadcast(index(number), lanes))
        vector = Select(is_own, value, vector)
    return vector


def _with_fixed_dtype(node: Node, vscale: int) -> Node | None:
    dtype_name = getattr(node, "dtype", None)
    dtype = None if dtype_name is None else DType.parse(dtype_name)
    if dtype is None or not dtype.scalable:
        return None
    return replace(node, dtype=DType(dtype.scalar, dtype.lanes * vscale).text)
