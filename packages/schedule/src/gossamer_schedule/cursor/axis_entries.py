"""The entries of the axis list of a sparse iteration, each with its kinds and variables."""

from __future__ import annotations

import msgspec

from gossamer_ir.nodes import FuseAxes, Iteration, IterationAxis


class AxisEntry(msgspec.Struct, frozen=True):
    """One entry of an iteration's axis list, with its iterator kinds and variables."""

    axis: IterationAxis
    kinds: str
    vars: tuple[str, ...]


def axis_entries(node: Iteration) -> tuple[AxisEntry, ...]:
    """Return the entries of an iteration, outermost first.

    >>> from gossamer_schedule import sparse_fuse
    >>> from gossamer_testkit.examples import SPMM_COORDINATE
    >>> fused = sparse_fuse(SPMM_COORDINATE, "csrmm", axes=("I", "J")).module
    >>> [(entry.kinds, entry.vars) for entry in axis_entries(fused.functions[0].body[0])]
    [('SR', ('i', 'j')), ('S', ('k',))]
    """
    entries: list[AxisEntry] = []
    start = 0
    for axis in node.axes:
        end = start + len(axis_names(axis))
        entries.append(AxisEntry(axis, node.kinds[start:end], node.vars[start:end]))
        start = end
    return tuple(entries)


def axis_names(item: IterationAxis) -> tuple[str, ...]:
    """Return the axes of an `OverAxis`, `FuseAxes` or `AttachAxis`.

    >>> from gossamer_ir.nodes import AttachAxis
    >>> axis_names(AttachAxis("J", "I")), axis_names(FuseAxes(("I", "J")))
    (('J',), ('I', 'J'))
    """
    return item.axes if isinstance(item, FuseAxes) else (item.axis,)
