"""The conditions for positions to lie in the fibers of varied axes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from gossamer_ir.arith.affine import Affine, affine_of, normal_form
from gossamer_ir.core.build import ONE, ZERO, add, integer_value, unconditional_extent
from gossamer_ir.core.conditions import TRUE
from gossamer_ir.nodes import (
    Block,
    BlockIter,
    Compare,
    Expr,
    Function,
    IfThenElse,
    Search,
    SparseBuffer,
    Var,
)
from gossamer_ir.traversal.buffer_uses import buffers_read
from gossamer_ir.traversal.rewrite import rewrite
from gossamer_ir.traversal.statement_queries import loop_of
from gossamer_ir.traversal.substitute import substitute
from gossamer_ir.traversal.walk import stmts
from gossamer_lower.axes.element_location import ElementLocation
from gossamer_lower.axes.fiber_positions import element_found
from gossamer_lower.buffers.layout.position_conditions import ProofGoal
from gossamer_lower.buffers.layout.storage_layout import Fiber, StorageLayout


class FiberConditions:
    """The conditions for positions to be in bounds, except those that the ranges of variables imply.

    `lower` rewrites an expression; `ranges` are the ends (exclusive) of variables that start at 0.
    """

    def __init__(
        self, storage: StorageLayout, *, lower: Callable[[Any], Any], ranges: dict[str, Expr]
    ) -> None:
        self._storage = storage
        self._lower = lower
        self._ranges = ranges
        self._extents: dict[str, Expr] = {}

    def present(self, buffer: SparseBuffer, positions: tuple[Expr, ...]) -> Expr | None:
        """Return the condition that positions lie in the fibers of varied axes; None if it is implied."""
        fibers = list(self._storage.fibers(buffer, positions))
        looked_up = [fiber.position for fiber in fibers if self._let_element(fiber) is not None]
        # The let of a found element has evaluated what its position is computed from.
        evaluated = [position for position in positions if position not in looked_up]
        return self.element_in_fibers(fibers).access_condition(evaluated)

    def element_in_fibers(self, fibers: Iterable[Fiber]) -> ElementLocation:
        """Return the conditions that positions lie in these fibers."""
        location = ElementLocation()
        for fiber in fibers:
            location.add(*self._conditions(fiber))
        return location

    def window_conditions(self, node: Search, extent: Expr) -> Iterator[Compare]:
        """Yield the conditions, unless implied, for the window of a search to lie in its fiber."""
        end, begin = add(extent, ONE), integer_value(node.begin)
        if begin is None or begin < 0:
            yield self._storage.position_conditions.compare("ge", node.begin, end)
        exceeding = self.exceeds(node.end, extent)
        if exceeding is None or exceeding > 0:
            yield self._storage.position_conditions.compare("lt", node.end, end)

    def exceeds(self, value: Expr, extent: Expr) -> int | None:
        """Return value - extent if it is a constant, else None."""
        if value == extent:
            return 0
        form, other = (normal_form(self._without_conditions(expr)) for expr in (value, extent))
        rest = form - other
        return rest.constant if rest.is_constant else None

    def _conditions(self, fiber: Fiber) -> Iterator[Compare]:
        """Yield the conditions, unless implied, for a position to lie in its fiber."""
        form, extent = affine_of(fiber.position), fiber.extent()
        var, walked = _one_var(form), None
        if var is not None and form.constant >= 0:
            walked = self._range_end(var)
        if walked is not None:
            exceeding = self.exceeds(walked, extent)
            if exceeding is not None and exceeding + form.constant <= 0:
                return
        goal = ProofGoal(fiber.inner(), fiber.length(), self._hit_condition(fiber))
        is_plain = form.constant >= 0 if not form.terms else walked is not None
        # The comparison with the length comes first: reading the length stops the kernel if the position
        # of an axis above is out of bounds.
        yield self._storage.position_conditions.with_alternative_proof(
            goal, "lt", fiber.position, extent
        )
        if not is_plain:
            yield self._storage.position_conditions.with_alternative_proof(
                goal, "ge", fiber.position, extent
            )

    def _hit_condition(self, fiber: Fiber) -> Expr | None:
        """Return the condition that a search in the fiber found the position; None if none computes it."""
        element = element_found(fiber.inner(), fiber.start, self._storage.found)
        if element is None:
            return None
        search = element if isinstance(element, Search) else self._storage.found[element]
        if self.exceeds(search.begin, fiber.start) != 0:
            return None
        exceeding = self.exceeds(search.end, fiber.end)
        is_inside = exceeding is not None and exceeding <= 0
        return Compare("ge", element, ZERO) if is_inside else None

    def _let_element(self, fiber: Fiber) -> Var | None:
        """Return the variable of the let that found the position; None if none did."""
        element = element_found(fiber.inner(), fiber.start, self._storage.found)
        return element if isinstance(element, Var) else None

    def _without_conditions(self, expr: Expr) -> Expr:
        """Return the expression with its position conditions resolved to true: those along the axes above
        are evaluated before."""
        added = self._storage.position_conditions

        def unconditional(node: Any) -> Any | None:
            is_conditional = isinstance(node, IfThenElse) and added.are_recorded(node.condition)
            return node.if_true if is_conditional else None

        result: Expr = rewrite(expr, unconditional, leaves=False)
        return result

    def _range_end(self, var: Var) -> Expr | None:
        """Return the end of the range of a loop or block variable that starts at 0."""
        extent = self._ranges.get(var.name)
        if extent is None:
            return None
        if var.name not in self._extents:
            lowered = self._without_conditions(self._lower(extent))
            self._extents[var.name] = unconditional_extent(lowered)
        return self._extents[var.name]


def ranges_of(function: Function) -> dict[str, Expr]:
    """Return the extents of variables that range over [0, extent) wherever memory is read."""
    extents: dict[str, Expr] = {}
    for stmt in stmts(function.body):
        loop = loop_of(stmt)
        if loop is not None and loop.start == ZERO:
            extents[loop.var] = loop.extent
        if not isinstance(stmt, Block):
            continue
        # A predicate is evaluated also where an iterator is outside its domain.
        is_read_outside = buffers_read(stmt.predicate or TRUE)
        for iterator in stmt.iters:
            if iterator.domain.start == ZERO and (
                not is_read_outside or _runs_over_domain(iterator, stmt, extents)
            ):
                extents[iterator.var] = iterator.domain.extent
    return extents


def _runs_over_domain(iterator: BlockIter, block: Block, extents: Mapping[str, Expr]) -> bool:
    """Return whether an iterator is the variable of a loop over its domain, so that it is never outside."""
    value = iterator.value
    values = {other.var: other.value for other in block.iters}
    return isinstance(value, Var) and extents.get(value.name) == substitute(
        iterator.domain.extent, values
    )


def _one_var(form: Affine) -> Var | None:
    """Return the variable if a form is a variable plus a constant; None otherwise."""
    match list(form.terms.items()):
        case [(Var() as var, 1)]:
            return var
    return None
