"""The number of slots before a row, by which rows are weighted."""

from __future__ import annotations

from gossamer_ir.core.axis_kinds import indptr_of, width_of
from gossamer_ir.core.build import integer_value, var_name
from gossamer_ir.core.lowered_names import indptr_name
from gossamer_ir.nodes import Axis


def slots_before(fiber: Axis, row: str, *, element: str) -> str | None:
    """Return the text of the number of slots before a row at the loop stage; None if it is unknown.

    `row` is the variable of the row, `element` its position among all elements of the row's axis.
    """
    indptr = indptr_of(fiber)
    if indptr is not None:
        load = f"{indptr_name(fiber.name)}[{element}]"
        return load if indptr.dtype == "int64" else f"T.int64({load})"
    fixed = width_of(fiber)
    width = var_name(fixed) or integer_value(fixed)
    return None if width is None else f"{width} * {row}"


def slots_of(fiber: Axis, row: str) -> str | None:
    """Return the text of the number of slots of a row of a root axis at the loop stage; None if it is
    unknown."""
    begin = slots_before(fiber, row, element=row)
    end = slots_before(fiber, f"({row} + 1)", element=f"{row} + 1")
    return None if begin is None or end is None else f"{end} - {begin}"
