"""Variables that kernels bind for each element: its coordinates and slots along the axes of a destination."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from gossamer_formats.conversion.by_kernels.kernels.shared_arguments import SINGLE, Size
from gossamer_ir.core.build import ZERO
from gossamer_ir.nodes import Expr, Stmt


class AxisSlot(NamedTuple):
    """An element's slot of an axis, and the number of all slots."""

    slot: Expr
    size: Size


ROOT_SLOT = AxisSlot(ZERO, SINGLE)
"""The slot of an element before all axes."""


class AxisCoordinate(NamedTuple):
    """An element's coordinate along an axis.

    `length`: the number of coordinates, if it is an expression of the shape. `logical`: the logical dimension
    that has the same coordinate. `dimensions`: the logical dimensions on which the coordinate depends.
    """

    value: Expr
    length: Size | None = None
    logical: int | None = None
    dimensions: frozenset[int] = frozenset()


class LaterSlot(NamedTuple):
    """About the slot of a later element, if the condition holds that there is one."""

    condition: Expr
    slot: Expr


class ElementBindings(NamedTuple):
    """The coordinates by axis, and the statements that find slots."""

    coordinates: Mapping[str, AxisCoordinate] = {}
    positions: Mapping[str, Expr] = {}
    """An element's position in a fiber of an axis, where the axis above it has determined it."""
    stmts: tuple[Stmt, ...] = ()
    """Executed for each element."""
    starts: tuple[Stmt, ...] = ()
    """Executed before the loops."""
    later: LaterSlot | None = None
    """The slot of a later element, whose value and coordinates will be stored there."""

    def extend(self, more: ElementBindings) -> ElementBindings:
        """Return these bindings, and more after them."""
        return ElementBindings(
            {**self.coordinates, **more.coordinates},
            {**self.positions, **more.positions},
            (*self.stmts, *more.stmts),
            (*self.starts, *more.starts),
            self.later if more.later is None else more.later,
        )
