"""Arrays that a loop over a fiber reads slot after slot: the coordinates and the values of elements."""

from __future__ import annotations

import msgspec

from gossamer_ir.core.axis_kinds import indices_of, indptr_of
from gossamer_ir.core.build import index_var
from gossamer_ir.core.dtypes import DType
from gossamer_ir.core.lowered_names import data_name, indices_name
from gossamer_ir.interchange.records import Stats
from gossamer_ir.nodes import Axis, Function, Iteration, Load
from gossamer_ir.traversal.walk import collect
from gossamer_schedule.rules.analysis.iterations import buffers_by_name


class FiberElements(msgspec.Struct, frozen=True):
    """The arrays at the loop stage, and the bytes that an element has in all of them."""

    arrays: tuple[str, ...]
    element_bytes: int

    def all_bytes(self, stats: Stats) -> int:
        """Return the bytes of all elements of a matrix.

        >>> matrix = Stats(rows=10, columns=10, nnz=30, longest_row=4, empty_rows=0)
        >>> FiberElements(("A_data", "J_indices"), 12).all_bytes(matrix)
        360
        """
        return stats.nnz * self.element_bytes


def elements_of_fiber(
    function: Function, iteration: Iteration, fiber: Axis, *, position: str
) -> FiberElements:
    """Return the arrays that an iteration reads at the slots of a varied fiber; none for another fiber, whose
    slots are not consecutive from one row to the next."""
    if indptr_of(fiber) is None:
        return FiberElements((), 0)
    loads = [load for stmt in iteration.body for load in collect(Load, stmt)]
    read = {load.buffer for load in loads if load.indices[-1:] == (index_var(position),)}
    dtypes = {
        data_name(name): buffer.dtype
        for name, buffer in buffers_by_name(function).items()
        if name in read and buffer.axes[-1:] == (fiber.name,)
    }
    indices = indices_of(fiber)
    if indices is not None and not indices.is_mask:
        dtypes[indices_name(fiber.name)] = indices.dtype
    return FiberElements(tuple(dtypes), sum(map(_element_bytes, dtypes.values())))


def _element_bytes(dtype: str) -> int:
    return max(8, DType.parse(dtype).bits) // 8
