"""Slots of a part that are not elements: they are skipped, or contribute nothing."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from gossamer_ir.analysis.axes.logical_elements import stores_only_elements
from gossamer_ir.analysis.statements.reductions import match_reduction
from gossamer_ir.arith.prover import Prover
from gossamer_ir.core.axis_kinds import is_full
from gossamer_ir.core.build import ZERO, fill_of, index_var
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
)
from gossamer_ir.transform.decomposition.decomposition_error import DecompositionError
from gossamer_ir.transform.decomposition.instantiated_format import InstantiatedFormat
from gossamer_ir.traversal.buffer_definitions import sparse_buffers
from gossamer_ir.traversal.buffer_uses import buffers_written
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.walk import stmts
from gossamer_support.items_by_name import items_by_name


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
    prover = _coordinates_of_axes(format)
    conditions = [
        condition
        for dimension in dimensions
        for condition in in_range(format.coordinates[dimension], format.shape[dimension])
        if not prover.proves(condition)
    ]
    return conjunction(*conditions)


def _coordinates_of_axes(format: InstantiatedFormat) -> Prover:
    """Return a prover that knows the range of the coordinates along each axis, that sizes are natural, and
    what the format declares of its index arrays."""
    axes = items_by_name(format.axes)
    prover = Prover(format.facts)
    for var, name in zip(format.vars, format.buffers[0].axes, strict=True):
        prover.assume_range(var, ZERO, axes[name].length)
    for size in sorted(free_vars(*format.shape, *(axis.length for axis in format.axes))):
        prover.assume_nonnegative(index_var(size))
    return prover


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
    for stmt in stmts(iteration.body):
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
        for buffer in sparse_buffers(function.buffers)
        if not full.issuperset(buffer.axes)
    }


# Other operations: nothing is concluded from them.
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
