"""The loops and block iterators that an iteration becomes."""

from __future__ import annotations

from typing import Literal

import msgspec

from gossamer_ir.core.axis_kinds import is_full, is_padded, parent_value
from gossamer_ir.core.build import ONE, ZERO, index_var
from gossamer_ir.core.conditions import conjunction
from gossamer_ir.core.iteration_axes import iterated_axes
from gossamer_ir.core.lowered_names import fused_name
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import (
    AttachAxis,
    Axis,
    Block,
    BlockIter,
    Compare,
    Expr,
    For,
    FuseAxes,
    Iteration,
    OverAxis,
    Range,
    Stmt,
)
from gossamer_ir.traversal.names import Namer
from gossamer_lower.axes.element_location import ElementLocation
from gossamer_lower.axes.index_buffers import IndexBuffers
from gossamer_lower.iterations.nests.coordinate_lookup import (
    AxisIterator,
    AxisIters,
    CoordinateTranslator,
    value_if,
)
from gossamer_lower.iterations.nests.fused_axes import FusedAxes


class LoopNest(msgspec.Struct):
    """The loops and block iterators that an iteration becomes, and the iterators for its variables, in
    the headers of the loops and in the block."""

    in_loops: AxisIters
    in_block: AxisIters
    loops: list[tuple[str, Expr]] = []
    iters: list[BlockIter] = []
    fused: set[str] = set()
    predicate: Expr | None = None

    def around(self, block: Block) -> Stmt:
        """Return the loops around a block."""
        result: Stmt = block
        for var, extent in reversed(self.loops):
            result = For(var, ZERO, extent, (result,))
        return result


class NestBuilder:
    """Builds the loop nests of the iterations of one function."""

    def __init__(
        self, index_buffers: IndexBuffers, translator: CoordinateTranslator, namer: Namer
    ) -> None:
        self._index_buffers = index_buffers
        self._translator = translator
        self._namer = namer

    def nest_of(self, node: Iteration, scope: AxisIters) -> LoopNest:
        """Return the loop nest of an iteration inside those whose iterators are in `scope`."""
        nest = LoopNest(dict(scope), dict(scope))
        for item in iterated_axes(node):
            if isinstance(item.axis, FuseAxes):
                self._add_fused(nest, item.axis, kinds=item.kinds, names=item.vars)
            else:
                self._add(nest, item.axis, kind=item.kinds, name=item.vars[0])
        return nest

    def _add(self, nest: LoopNest, item: OverAxis | AttachAxis, *, kind: str, name: str) -> None:
        var = self._namer.fresh(f"v{name}")
        # Twice: loop headers use loop variables, the block uses its iterators.
        around = self._enter(nest.in_loops, item, name=name, position=index_var(name))
        inside = self._enter(nest.in_block, item, name=name, position=index_var(var))
        nest.loops.append((name, around))
        domain = Range(ZERO, inside)
        # A reduction over one element combines nothing, so its init may run with it.
        kind = "S" if is_unit(self._index_buffers.tree.axis(item.axis)) else kind
        nest.iters.append(BlockIter(var, _kind_of(kind), domain, index_var(name)))
        self._skip_padding(nest, name)

    def _enter(
        self, scope: AxisIters, item: OverAxis | AttachAxis, *, name: str, position: Expr
    ) -> Expr:
        """Add an iterator to the scope, and return the number of positions in its fiber."""
        axis = self._index_buffers.tree.axis(item.axis)
        location = ElementLocation()
        above = self._fiber(axis, item, scope=scope, location=location)
        scope[name] = AxisIterator(axis, position, above)
        extent = self._index_buffers.extent(axis, above or ())
        return value_if(location.present_condition(), extent, otherwise=ZERO)

    def _fiber(
        self,
        axis: Axis,
        item: OverAxis | AttachAxis,
        *,
        scope: AxisIters,
        location: ElementLocation,
    ) -> tuple[Expr, ...] | None:
        """Return the positions along the ancestors of an iterated axis; None for a dense axis that is
        iterated without them."""
        if isinstance(item, AttachAxis):
            return self._attached_positions(axis, item, scope=scope, location=location)
        if axis.parent is None:
            return ()
        path = self._path(axis.parent, scope)
        # The extent of a dense axis does not depend on its parent; that of any other axis is read there.
        if path is None and not is_full(axis):
            raise _parent_error(_without_iterator(axis.parent, scope))
        return path

    def _attached_positions(
        self, axis: Axis, item: AttachAxis, *, scope: AxisIters, location: ElementLocation
    ) -> tuple[Expr, ...]:
        """Return the positions along the ancestors that the coordinate of another iterator selects."""
        assert axis.parent is not None
        parent = self._index_buffers.tree.axis(axis.parent)
        over = _innermost(item.parent, scope)
        assert over is not None
        above = self._ancestor_positions(parent, scope)
        return (
            *above,
            self._translator.attached_position(parent, above, over=over, location=location),
        )

    def _ancestor_positions(self, axis: Axis, scope: AxisIters) -> tuple[Expr, ...]:
        """Return the positions along the ancestors of an axis that is not iterated itself."""
        chain = self._index_buffers.tree.chain(axis)[:-1]
        path = self._path(chain[-1].name, scope) if chain else ()
        if path is None and not all(is_unit(ancestor) for ancestor in chain):
            raise _parent_error(chain[-1].name)
        return (ZERO,) * len(chain) if path is None else path

    def _path(self, name: str, scope: AxisIters) -> tuple[Expr, ...] | None:
        """Return the positions of the iterator over an axis, root first; None if it has none."""
        iterator = _innermost(name, scope)
        return None if iterator is None else iterator.path()

    def _add_fused(
        self, nest: LoopNest, item: FuseAxes, *, kinds: str, names: tuple[str, ...]
    ) -> None:
        loop = self._namer.fresh(fused_name(names))
        var = self._namer.fresh(f"v{loop}")
        around = self._enter_fused(nest.in_loops, item, names=names, count=index_var(loop))
        inside = self._enter_fused(nest.in_block, item, names=names, count=index_var(var))
        nest.loops.append((loop, around))
        # One reduction among the fused axes makes the fused loop visit elements several times.
        kind = _kind_of("S" if set(kinds) == {"S"} else "R")
        domain = Range(ZERO, inside)
        nest.iters.append(BlockIter(var, kind, domain, index_var(loop)))
        nest.fused.add(var)
        for name in names:
            self._skip_padding(nest, name)

    def _enter_fused(
        self, scope: AxisIters, item: FuseAxes, *, names: tuple[str, ...], count: Expr
    ) -> Expr:
        """Add the iterators of fused axes to the scope, and return the number of elements."""
        axes = tuple(self._index_buffers.tree.axis(name) for name in item.axes)
        above = self._fiber(
            axes[0], OverAxis(axes[0].name), scope=scope, location=ElementLocation()
        )
        if above is None:
            raise _parent_error(axes[0].parent)
        tree = self._index_buffers.tree
        names_above = [ancestor.name for ancestor in tree.chain(axes[0])[:-1]]
        elements = tree.elements(names_above, dict(zip(names_above, above, strict=True)))
        fused = FusedAxes(axes, self._index_buffers, parent_value(axes[0], elements))
        for name, axis, position in zip(names, axes, fused.positions(count), strict=True):
            scope[name] = AxisIterator(axis, position, above)
            above = (*above, position)
        return fused.extent()

    def _skip_padding(self, nest: LoopNest, name: str) -> None:
        """Add the predicate that a slot of a padded axis is an element: padding holds the coordinate
        `length`."""
        iterator = nest.in_block[name]
        axis = iterator.axis
        # The slot is skipped instead of shortened: rows keep one length, which vectors need.
        if is_padded(axis):
            slot = Compare("ne", self._translator.coordinate(iterator), axis.length)
            nest.predicate = conjunction(nest.predicate, slot)


def is_unit(axis: Axis) -> bool:
    """Return whether an axis is dense and has one element."""
    return is_full(axis) and axis.length == ONE


def _kind_of(letter: str) -> Literal["S", "R"]:
    return "R" if letter == "R" else "S"


def _innermost(axis_name: str, scope: AxisIters) -> AxisIterator | None:
    """Return the innermost iterator over an axis; None if it is not iterated."""
    return next(
        (iterator for iterator in reversed([*scope.values()]) if iterator.axis.name == axis_name),
        None,
    )


def _without_iterator(name: str, scope: AxisIters) -> str | None:
    """Return the axis whose iterator is missing to select a fiber below the axis `name`: that axis, or
    the parent of its iterator."""
    iterator = _innermost(name, scope)
    return name if iterator is None else iterator.axis.parent


def _parent_error(name: str | None) -> UnsupportedError:
    return UnsupportedError(
        "lower.lower_iterations.missing_parent",
        f"The iteration includes a child of axis '{name}', but not '{name}' itself.",
        hint=f"Add '{name}' to the iteration, before its child.",
    )
