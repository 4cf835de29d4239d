"""The distinct coordinates in each fiber of an axis, whose slots are shared by elements.

The elements of a fiber must be together. Then a table that is as long as the axis marks the coordinates of
one fiber at a time, as the products of rows do in the algorithm of Gustavson.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gossamer_formats.conversion.compiled.assembly_state import AssemblyState, NotDirectError, Place
from gossamer_formats.conversion.compiled.program import Operand, widened
from gossamer_formats.conversion.compiled.sorted_fibers import sort_fibers
from gossamer_formats.conversion.dtypes import limits_of
from gossamer_formats.storage import Array, native_name
from gossamer_ir.core.axis_kinds import indices_of
from gossamer_ir.nodes import Axis


class MarkedFibers(NamedTuple):
    """The first slot of each fiber, and the coordinates of all fibers."""

    offsets: Array
    coordinates: Array


def marked_fibers(state: AssemblyState, axis: Axis, parent: Place) -> MarkedFibers:
    """Return the distinct coordinates along an axis in each fiber, sorted if the axis says so.

    Raises `NotDirectError` (`needs_order`) if elements of a fiber are not together.
    """
    if _are_scattered(state, axis, parent):
        raise NotDirectError("elements of a fiber are scattered", needs_order=True)
    span = state.sizes.value(axis.length)
    state.require_table(max(span, parent.slots))
    # One more: a coordinate that is marked already is stored at the end, and overwritten by the next.
    capacity = state.source.values.size + 1
    listed, ends = np.empty(capacity, np.int32), np.zeros(parent.slots, np.int32)
    if capacity > limits_of("int32")[1]:
        raise NotDirectError("there are too many elements")
    totals = np.zeros(2, np.int64)
    statements = [
        f"g_ = {parent.text}",
        "BACKWARDS[0] = T.select(g_ < LAST[0], 1, BACKWARDS[0])",
        "LAST[0] = g_",
        f"c_ = {state.coordinates[axis.name]}",
        "k_ = TOTAL[0]",
        "LISTED[k_] = T.int32(c_)",
        "TOTAL[0] = k_ + T.select(T.int64(MARK[c_]) == g_ + 1, 0, 1)",
        "MARK[c_] = T.int32(g_ + 1)",
        "ENDS[g_] = T.int32(TOTAL[0])",
    ]
    scalars = ("TOTAL", "LAST", "BACKWARDS")
    state.query(
        statements,
        {
            "MARK": Operand(np.zeros(span, np.int32), state.length(axis)),
            "ENDS": Operand(ends, parent.size),
            "LISTED": listed,
            "TOTALS": Operand(totals, "2"),
        },
        before=[
            line
            for name in scalars
            for line in (
                f'{name} = T.alloc_buffer((1,), "int64", scope="local")',
                f"{name}[0] = 0",
            )
        ],
        after=["TOTALS[0] = TOTAL[0]", "TOTALS[1] = BACKWARDS[0]"],
    )
    if totals[1]:
        raise NotDirectError("elements of a fiber are not together", needs_order=True)
    offsets = np.zeros(parent.slots + 1, np.int32)
    np.maximum.accumulate(ends, out=offsets[1:])
    coordinates = listed[: int(totals[0])]
    stored = indices_of(axis)
    if stored is None or stored.sorted:
        sort_fibers(state.compile, coordinates, offsets)
    return MarkedFibers(offsets, coordinates)


def _are_scattered(state: AssemblyState, axis: Axis, parent: Place) -> bool:
    """Return whether the outermost loop varies a coordinate on which the fiber of an element does not depend:
    then hardly any fiber has its elements together."""
    names = state.description.buffer.axes
    outer = [state.dimensions.get(name, frozenset()) for name in names[: names.index(axis.name)]]
    of_fiber = frozenset().union(*outer)
    is_single = parent.slots == 1 or not of_fiber
    return (
        not is_single
        and bool(state.order.digits)
        and state.order.digits[0].dimension not in of_fiber
    )


def add_ranks(
    state: AssemblyState, axis: Axis, parent: Place, fibers: MarkedFibers, coordinate: str
) -> str:
    """Return the text of the rank of an element's coordinate within its fiber: a table has those of one fiber
    at a time."""
    name = axis.name
    offsets = widened(f"STARTS_{name}[{{}}]", native_name(fibers.offsets.dtype))
    state.arguments |= {
        f"STARTS_{name}": Operand(fibers.offsets, f"{parent.size} + 1"),
        f"LISTED_{name}": fibers.coordinates,
        f"RANK_{name}": np.empty(int(fibers.coordinates.max(initial=0)) + 1, np.int32),
    }
    state.starts += [
        f'FIBER_{name} = T.alloc_buffer((1,), "int64", scope="local")',
        f"FIBER_{name}[0] = -1",
    ]
    state.statements += [
        f"g_{name} = {parent.text}",
        f"b_{name} = {offsets.format(f'g_{name}')}",
        f"if g_{name} != FIBER_{name}[0]:",
        f"    FIBER_{name}[0] = g_{name}",
        f"    for s_{name} in T.serial(b_{name}, {offsets.format(f'g_{name} + 1')}):",
        f"        RANK_{name}[T.int64(LISTED_{name}[s_{name}])] = T.int32(s_{name} - b_{name})",
        f"r_{name} = T.int64(RANK_{name}[{coordinate}])",
    ]
    return f"r_{name}"
