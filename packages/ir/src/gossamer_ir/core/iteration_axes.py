"""The table of the entries in the axis list of an iteration: which axes an entry iterates, and to which axis
it is attached.

All code takes the axes, kinds and variables of an iteration from the functions of this module, so that a
new type of entry needs one row here. Tests check that the table covers `IterationAxis`.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any

import msgspec

from gossamer_ir.nodes import AttachAxis, FuseAxes, Iteration, IterationAxis, OverAxis


class IterationAxisKind(msgspec.Struct, frozen=True):
    """Properties of every entry of a type."""

    names: Callable[[Any], tuple[str, ...]]
    """Returns the axes that are iterated, outermost first; each has a variable and a kind."""
    attached_to: Callable[[Any], str] | None = None
    """Returns the axis whose coordinate selects the fiber. None: elements of the parent select it."""


ITERATION_AXIS_KINDS: dict[type[Any], IterationAxisKind] = {
    OverAxis: IterationAxisKind(lambda entry: (entry.axis,)),
    FuseAxes: IterationAxisKind(attrgetter("axes")),
    AttachAxis: IterationAxisKind(lambda entry: (entry.axis,), attached_to=attrgetter("parent")),
}
"""One entry for each type in `IterationAxis`."""


class IteratedAxis(msgspec.Struct, frozen=True):
    """One axis of an iteration, or several fused ones, with its iterator kinds and variables."""

    axis: IterationAxis
    kinds: str
    vars: tuple[str, ...]


def axis_names(entry: IterationAxis) -> tuple[str, ...]:
    """Return the axes that an entry iterates, outermost first.

    >>> axis_names(AttachAxis("J", "I")), axis_names(FuseAxes(("I", "J")))
    (('J',), ('I', 'J'))
    """
    return ITERATION_AXIS_KINDS[type(entry)].names(entry)


def attachment_of(entry: IterationAxis) -> str | None:
    """Return the axis whose coordinate selects the fiber of an entry; None if it is not attached.

    >>> attachment_of(AttachAxis("J", "K")), attachment_of(OverAxis("J"))
    ('K', None)
    """
    attached = ITERATION_AXIS_KINDS[type(entry)].attached_to
    return None if attached is None else attached(entry)


def iterated_axes(node: Iteration) -> tuple[IteratedAxis, ...]:
    """Return the axes of an iteration, outermost first.

    >>> fused = Iteration("spmm", (FuseAxes(("I", "J")), OverAxis("K")), "SRS", ("i", "j", "k"), ())
    >>> [(item.kinds, item.vars) for item in iterated_axes(fused)]
    [('SR', ('i', 'j')), ('S', ('k',))]
    """
    items: list[IteratedAxis] = []
    start = 0
    for axis in node.axes:
        end = start + len(axis_names(axis))
        items.append(IteratedAxis(axis, node.kinds[start:end], node.vars[start:end]))
        start = end
    return tuple(items)


def all_axis_names(entries: tuple[IterationAxis, ...]) -> tuple[str, ...]:
    """Return the axes that several entries iterate, outermost first: one for each variable.

    >>> all_axis_names((FuseAxes(("I", "J")), OverAxis("K")))
    ('I', 'J', 'K')
    """
    return tuple([name for entry in entries for name in axis_names(entry)])
