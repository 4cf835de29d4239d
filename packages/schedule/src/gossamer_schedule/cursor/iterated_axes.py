"""The axes of a sparse iteration, each with its kinds and variables."""

from __future__ import annotations

import msgspec

from gossamer_ir.nodes import FuseAxes, Iteration, IterationAxis


class IteratedAxis(msgspec.Struct, frozen=True):
    """One axis of an iteration, or several fused ones, with its iterator kinds and variables."""

    axis: IterationAxis
    kinds: str
    vars: tuple[str, ...]


def iterated_axes(node: Iteration) -> tuple[IteratedAxis, ...]:
    """Return the axes of an iteration, outermost first.

    >>> from gossamer_schedule import sparse_fuse
    >>> from gossamer_testkit.examples import SPMM_COORDINATE
    >>> fused = sparse_fuse(SPMM_COORDINATE, "csrmm", axes=("I", "J")).module
    >>> [(item.kinds, item.vars) for item in iterated_axes(fused.functions[0].body[0])]
    [('SR', ('i', 'j')), ('S', ('k',))]
    """
    items: list[IteratedAxis] = []
    start = 0
    for axis in node.axes:
        end = start + len(axis_names(axis))
        items.append(IteratedAxis(axis, node.kinds[start:end], node.vars[start:end]))
        start = end
    return tuple(items)


def axis_names(item: IterationAxis) -> tuple[str, ...]:
    """Return the axes of an `OverAxis`, `FuseAxes` or `AttachAxis`.

    >>> from gossamer_ir.nodes import AttachAxis
    >>> axis_names(AttachAxis("J", "I")), axis_names(FuseAxes(("I", "J")))
    (('J',), ('I', 'J'))
    """
    return item.axes if isinstance(item, FuseAxes) else (item.axis,)
