"""A loop over elements for a loop over vectors and the lanes below it, the reverse of a split."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from gossamer_ir.analysis.accesses.linear_form import LinearForm, by_vars
from gossamer_ir.arith.affine import ONE_FORM, Affine, affine_of, expr_of, times
from gossamer_ir.core.build import ZERO, index_var, integer_value, mul
from gossamer_ir.core.conditions import conjunction, conjuncts
from gossamer_ir.dependence.mixed_radix import ceildiv_by, ceildiv_in_range
from gossamer_ir.nodes import Block, Compare, Expr, For, Stmt
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.substitute import resolve
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.errors import schedule_error
from gossamer_schedule.nests.vector_nests import VectorNest


class WholeLoop(msgspec.Struct, frozen=True):
    """The blocks of a nest of vectors in terms of an `element`, and the bound below which there are elements.
    It is None if the blocks have none. Lanes past a bound did nothing, and no vector had only such lanes."""

    element: str
    blocks: tuple[Block, ...]
    bound: Expr | None

    def loop(self, outer: For, nest: VectorNest, *, bound: Expr | None) -> For:
        """Return the loop over all elements; those below a `bound`, if it is given."""
        if bound is None:
            extent = mul(outer.extent, nest.elements)
            return For(self.element, ZERO, extent, self.blocks)
        blocks = tuple(_without_bound(block, self.element) for block in self.blocks)
        return For(self.element, ZERO, bound, blocks)


def required_whole_loop(
    cursor: Cursor[object], outer: For, nest: VectorNest, element: str
) -> WholeLoop:
    """Return the loop over elements of a nest below a loop; refuse blocks that use these loops otherwise than
    as the digits of a number. Errors are about `cursor`."""
    blocks = tuple(
        _required_block(stmt, element, cursor=cursor, outer=outer, nest=nest)
        for stmt in nest.lanes.body
    )
    bounds = {_bound_of(block, element) for block in blocks}
    bound = bounds.pop() if len(bounds) == 1 else None
    return WholeLoop(element, blocks, bound if _covers(outer, nest, bound) else None)


def _covers(outer: For, nest: VectorNest, bound: Expr | None) -> bool:
    """Return whether a loop has as many iterations as a split of `bound` elements makes."""
    if bound is None:
        return False
    size = affine_of(nest.elements)
    return outer.extent in (ceildiv_by(bound, size), ceildiv_in_range(bound, size))


def _required_block(
    stmt: Stmt, element: str, *, cursor: Cursor[object], outer: For, nest: VectorNest
) -> Block:
    """Return a block with its iterators in terms of the loop over all elements."""
    digits = (outer, *nest.loops)
    names = {loop.var for loop in digits}
    if isinstance(stmt, Block):
        number = _NumberOf(element, digits)
        iters = tuple(
            replace(iterator, value=number.in_terms(iterator.value)) for iterator in stmt.iters
        )
        parts = (number.in_comparison(part) for part in conjuncts(stmt.predicate))
        changed: Block = replace(stmt, iters=iters, predicate=conjunction(*parts))
        if not names & free_vars(changed):
            return changed
    lanes = nest.lanes.var
    wanted = " + ".join((*(f"{loop.var} * lanes" for loop in digits[:-1]), lanes))
    raise schedule_error(
        f"{cursor.primitive}.index",
        f"Loop '{lanes}' contains something that is not a block in which the loops only occur as {wanted}.",
        hint="Convert lanes before other primitives change what the lanes compute.",
        place=cursor.place,
    )


class _NumberOf(msgspec.Struct, frozen=True):
    """An element as the number whose digits are loops, outermost first."""

    element: str
    digits: tuple[For, ...]

    def in_comparison(self, part: Expr) -> Expr:
        """Return a condition in terms of the element, as far as it compares numbers."""
        if not isinstance(part, Compare):
            return part
        return replace(part, lhs=self.in_terms(part.lhs), rhs=self.in_terms(part.rhs))

    def in_terms(self, value: Expr) -> Expr:
        """Return a value in terms of the element; the same if it is not linear in that."""
        form = by_vars(affine_of(value), tuple(loop.var for loop in self.digits))
        step = form.terms.get(self.digits[-1].var)
        if form.opaque or step is None or not self._is_number(form, step):
            return value
        return expr_of(form.base + times(step, affine_of(index_var(self.element))))

    def _is_number(self, form: LinearForm, step: Affine) -> bool:
        """Return whether a form is `step` times the number; a loop of one iteration may be missing."""
        span = ONE_FORM
        for loop in reversed(self.digits):
            is_missing = loop.var not in form.terms and integer_value(loop.extent) == 1
            if not is_missing and form.terms.get(loop.var) != times(step, span):
                return False
            span = times(span, affine_of(loop.extent))
        return True


def _bounds_in(block: Block, element: str) -> list[tuple[Expr, Expr]]:
    """Return the conditions of a block that the element is below a bound, each with the bound."""
    values = {iterator.var: iterator.value for iterator in block.iters}
    parts = [part for part in conjuncts(block.predicate) if isinstance(part, Compare)]
    sides = [(part, resolve(part.lhs, values), resolve(part.rhs, values)) for part in parts]
    return [
        (part, bound)
        for part, below, bound in sides
        if part.op == "lt" and below == index_var(element) and element not in free_vars(bound)
    ]


def _bound_of(block: Block, element: str) -> Expr | None:
    bounds = _bounds_in(block, element)
    return bounds[0][1] if bounds else None


def _without_bound(block: Block, element: str) -> Block:
    """Return a block without the condition that the element is below its bound."""
    condition, _ = _bounds_in(block, element)[0]
    parts = [part for part in conjuncts(block.predicate) if part != condition]
    return replace(block, predicate=conjunction(*parts))
