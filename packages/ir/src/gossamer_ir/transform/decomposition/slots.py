"""Slots of a part that are not elements: they are skipped, or contribute nothing."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from gossamer_ir.analysis.logical_elements import (
    logical_shape,
    map_results,
    map_variables,
    stores_only_elements,
)
from gossamer_ir.analysis.reductions import match_reduction
from gossamer_ir.core.axis_kinds import is_full
from gossamer_ir.core.build import fill_of, integer_value
from gossamer_ir.core.conditions import conjunction, in_range
from gossamer_ir.core.constants import value_of
from gossamer_ir.nodes import (
    Binary,
    Cast,
    Expr,
    Function,
    If,
    Iteration,
    Load,
    SparseBuffer,
    Stmt,
    Store,
    Unary,
    Var,
)
from gossamer_ir.transform.decomposition.decomposition_error import DecompositionError
from gossamer_ir.transform.decomposition.instantiated_format import InstantiatedFormat
from gossamer_ir.traversal.effects import buffers_written
from gossamer_ir.traversal.walk import statements


def skipping_unused_slots(
    body: tuple[Stmt, ...],
    format: InstantiatedFormat,
    *,
    dimensions: Collection[int] | None = None,
) -> tuple[Stmt, ...]:
    """Return statements over a part that run for the slots that are elements.

    `dimensions` are those in which coordinates may be outside of the tensor (None: all). An init uses some of
    the coordinates only, and runs for each element that these select.
    """
    chosen = range(len(format.shape)) if dimensions is None else dimensions
    condition = _condition_of_elements(format, chosen)
    return body if condition is None else (If(condition, body),)


def _condition_of_elements(format: InstantiatedFormat, dimensions: Collection[int]) -> Expr | None:
    """Return the condition that the coordinates of a slot are inside of the tensor in these dimensions; None
    if they always are."""
    description = format.description
    # Without a declared shape, the range of the map is unknown.
    sizes = logical_shape(description) or (None,) * len(format.shape)
    lengths = {axis.name: axis.length for axis in description.axes}
    along = dict(zip(map_variables(description), description.buffer.axes, strict=True))
    conditions = [
        condition
        for dimension, (result, size, coordinate, extent) in enumerate(
            zip(map_results(description), sizes, format.coordinates, format.shape, strict=True)
        )
        # A coordinate along an axis of this length is always inside.
        if dimension in dimensions
        and not (isinstance(result, Var) and lengths[along[result.name]] == size)
        for condition in _in_range(coordinate, extent)
    ]
    return conjunction(*conditions)


def _in_range(coordinate: Expr, extent: Expr) -> list[Expr]:
    low, high = in_range(coordinate, extent)
    return [high] if _is_nonnegative(coordinate) else [low, high]


def _is_nonnegative(coordinate: Expr) -> bool:
    """Return whether a coordinate is a sum of products of coordinates along axes, and of sizes."""
    if isinstance(coordinate, Binary) and coordinate.op in ("add", "mul"):
        return _is_nonnegative(coordinate.lhs) and _is_nonnegative(coordinate.rhs)
    return isinstance(coordinate, Var) or (integer_value(coordinate) or 0) > 0


def require_neutral_slots(
    iteration: Iteration,
    function: Function,
    stored: Sequence[SparseBuffer],
    format: InstantiatedFormat,
) -> None:
    """Require that slots that fill dense axes, which hold zeros, contribute nothing, and that nothing is
    stored for them to elements that are absent."""
    if stores_only_elements(format.description):
        return
    sparse = _sparse_buffers(function) - {buffer.name for buffer in stored}
    for name in sorted(buffers_written((*iteration.init, *iteration.body)) & sparse):
        raise DecompositionError(
            "fill",
            f"The format of part '{format.name}' fills dense axes with zeros, but iteration "
            f"'{iteration.name}' stores to '{name}', which does not have all elements.",
        )
    names = {buffer.name for buffer in stored if value_of(fill_of(buffer)) == 0}
    for stmt in statements(iteration.body):
        if not isinstance(stmt, Store):
            continue
        reduction = match_reduction(stmt)
        if reduction is None or reduction.op != "add" or not _vanishes(reduction.value, names):
            raise DecompositionError(
                "fill",
                f"The format of part '{format.name}' fills dense axes with zeros, but iteration "
                f"'{iteration.name}' does not add multiples of the values, so that they would count.",
            )


def _sparse_buffers(function: Function) -> set[str]:
    """Return the names of the buffers that have an axis without some of the coordinates."""
    full = {axis.name for axis in function.axes if is_full(axis)}
    return {
        buffer.name
        for buffer in function.buffers
        if isinstance(buffer, SparseBuffer) and not full.issuperset(buffer.axes)
    }


def _vanishes(expr: Expr, zeros: Collection[str]) -> bool:
    """Return whether a value is zero where the elements of some buffers are zero and others are finite."""
    match expr:
        case Load():
            return expr.buffer in zeros
        case Binary(op="mul"):
            return _vanishes(expr.lhs, zeros) or _vanishes(expr.rhs, zeros)
        case Binary(op="add" | "sub"):
            return _vanishes(expr.lhs, zeros) and _vanishes(expr.rhs, zeros)
        case Unary(op="neg"):
            return _vanishes(expr.operand, zeros)
        case Cast():
            return _vanishes(expr.value, zeros)
    return False
