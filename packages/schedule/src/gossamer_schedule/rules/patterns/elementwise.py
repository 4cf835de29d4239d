"""The pattern of a value for each stored element of rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from gossamer_ir.core.axis_kinds import indices_of, is_dense_root, is_full, is_varied
from gossamer_ir.core.build import index_var
from gossamer_ir.nodes import Axis, Function, Iteration, Load, SparseBuffer, Store, Var
from gossamer_ir.traversal.walk import children
from gossamer_schedule.rules.analysis.iterations import (
    axes_of,
    buffers_by_name,
    single_iteration_pattern,
)
from gossamer_schedule.rules.analysis.regular_reads import reads_regularly
from gossamer_schedule.rules.analysis.slots import slots_before


class Elementwise(msgspec.Struct, frozen=True):
    """`out[i, j] = ...` with j in the fiber of a dense row i.

    Names of loops are those of the loop stage. `before` is the text of the number of slots before a row
    (None: unknown). `is_flat` is true if one loop can run over all elements, since no value depends on its
    row.
    """

    iteration: str
    axis_names: tuple[str, str]
    row: str
    position: str
    dtype: str
    before: str | None
    is_flat: bool

    @property
    def text(self) -> str:
        """The pattern in words."""
        return f"a value for each element {self.position} that row {self.row} stores"


class _RowElements(msgspec.Struct, frozen=True):
    """The axes of an iteration, its variables, and the buffers of the function."""

    row: Axis
    fiber: Axis
    vars: tuple[str, ...]
    buffers: Mapping[str, SparseBuffer]


@single_iteration_pattern
def elementwise_pattern(function: Function, iteration: Iteration) -> Elementwise | None:
    """Return the pattern of a coordinate module of one iteration; None for any other program."""
    elements = _elements(function, iteration)
    if elements is None or iteration.init or len(iteration.body) != 1:
        return None
    store = iteration.body[0]
    if not isinstance(store, Store) or store.predicate or not _is_own(store, elements):
        return None
    if not reads_regularly(function, iteration, lane=iteration.vars[1]):
        return None
    row, position = iteration.vars
    return Elementwise(
        iteration=iteration.name,
        axis_names=(elements.row.name, elements.fiber.name),
        row=row,
        position=position,
        dtype=elements.buffers[store.buffer].dtype,
        before=slots_before(elements.fiber, row, element=row),
        is_flat=is_varied(elements.fiber) and not _depends_on_row(store.value, elements),
    )


def _elements(function: Function, iteration: Iteration) -> _RowElements | None:
    axes = axes_of(function, iteration)
    if len(axes) != 2 or iteration.kinds != "SS" or not is_dense_root(axes[0]):
        return None
    row, fiber = axes
    if is_full(fiber) or fiber.parent != row.name:
        return None
    return _RowElements(row, fiber, iteration.vars, buffers_by_name(function))


def _is_own(access: Load | Store, elements: _RowElements) -> bool:
    """Return whether an access is to the stored element of the iteration's variables."""
    buffer = elements.buffers.get(access.buffer)
    vars = tuple(index_var(name) for name in elements.vars)
    is_stored = buffer is not None and buffer.axes == (elements.row.name, elements.fiber.name)
    return is_stored and access.indices == vars


def _depends_on_row(value: Any, elements: _RowElements) -> bool:
    """Return whether a value depends on the row, or, in a dense fiber, on the start of the row."""
    if isinstance(value, Load) and _is_own(value, elements):
        return False
    # Without stored coordinates, a coordinate is the position since the start of the row.
    forbidden = elements.vars if indices_of(elements.fiber) is None else elements.vars[:1]
    if isinstance(value, Var):
        return value.name in forbidden
    return any(_depends_on_row(child, elements) for child in children(value))
