"""Axes that do not occur in the map, and the compressed axes below that take their elements."""

from __future__ import annotations

from collections.abc import Mapping

from gossamer_formats.storage import ancestors
from gossamer_ir.nodes import Axis


def axes_between(by_name: Mapping[str, Axis], above: Axis, below: Axis) -> list[str]:
    """Return the names of the axes between an axis and one below it, from the outermost.

    >>> from gossamer_formats.descriptions.csf import csf
    >>> from gossamer_ir.support.items_by_name import items_by_name
    >>> axes = items_by_name(csf(dimensions=4).axes)
    >>> names = list(axes)
    >>> axes_between(axes, axes[names[0]], axes[names[-1]]) == names[1:-1]
    True
    """
    names = ancestors(by_name, below.name)
    return names[: names.index(above.name)][::-1]
