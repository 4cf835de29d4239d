"""Inequalities about loads from index arrays, instantiated from the facts that are known about them.

A fact quantifies over all elements of an array. A proof needs it for the elements in its goal only, so
it is instantiated when elimination reaches a load: for that load alone (`InRange`, `HasValue`), or for
that load and another one of the goal (`Monotone`, `SortedSegments`, `ProductSteps`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import permutations
from typing import TypeAlias, TypeGuard

from gossamer_ir.arith.affine import Affine, affine_of, distance, expr_of, multiply, scale
from gossamer_ir.arith.constraints import Constraints
from gossamer_ir.arith.nonaffine_bounds import strip_widening
from gossamer_ir.arith.offsets import length_of, next_offset, offset_of
from gossamer_ir.core.build import ONE, ZERO, add, sub, widen
from gossamer_ir.facts.fact_index import fact_index
from gossamer_ir.nodes import (
    Binary,
    Expr,
    Fact,
    HasValue,
    InRange,
    Load,
    Monotone,
    Node,
    ProductSteps,
    Relation,
    Search,
    SortedSegments,
)
from gossamer_ir.traversal.walk import walk

MAX_SEGMENTS = 6
"""The number of candidate segments that are tried for two positions."""

Proves: TypeAlias = Callable[[Expr], bool]
"""True if an expression is proved to be at least 0, within the budget of the current proof."""


class IndexArrayFacts:
    """Instances of facts for the loads of a goal.

    `proves` decides side conditions, such as the order of two positions; `constraints` are searched for
    the segments that they mention.
    """

    def __init__(self, facts: Iterable[Fact], constraints: Constraints, proves: Proves) -> None:
        self._facts = fact_index(facts)
        self._constraints = constraints
        self._proves = proves

    def has_products(self, buffer_name: str) -> bool:
        """Return whether an array holds prefix sums of products."""
        return self._facts.holds(buffer_name, ProductSteps)

    def about_load(self, atom: Expr, load: Load, goal: Affine) -> Iterator[Affine]:
        """Yield forms that are not negative, from all facts about a load (`atom`, if it is widened) of a
        goal."""
        # Equations first: an inequality that is used in their place loses what they relate.
        yield from self._about_prefix_sum(load, goal)
        for other, neighbor in _loads_beside(load, goal):
            if self._facts.holds(load.buffer, Monotone):
                yield from self._monotone_inequalities(atom, load, other, neighbor)
            yield from self._segment_inequalities((atom, load), (other, neighbor))
        for fact in self._facts.about(load.buffer, HasValue):
            if _is_equal(fact.index, load.indices[-1]):
                yield affine_of(Binary("sub", atom, fact.value))
                yield affine_of(Binary("sub", fact.value, atom))
        interval = self._facts.last(load.buffer, InRange)
        if interval is not None:
            yield affine_of(Binary("sub", atom, interval.low))
            yield affine_of(Binary("sub", Binary("sub", interval.high, ONE), atom))

    def is_hit(self, search: Search) -> bool:
        """Return whether an exact search is proved to find its value.

        This holds if the value comes from a segment of one array, the search covers the segment with
        the same number in another array, and a fact says that the first array is a subset of the second.
        """
        value = strip_widening(search.value)
        # The relation is between whole arrays, fiber by fiber:
        # only a value from that array is known to occur.
        if not isinstance(value, Load) or not self._is_subset(value.buffer, search.buffer):
            return False
        segments = self._facts.last(value.buffer, SortedSegments)
        if search.kind != "exact" or segments is None:
            return False
        number, indptr = self._segment_searched(search), segments.indptr
        # Without indptr, arrays over several axes have their segments along the last one.
        if number is None or indptr is None:
            return number is not None and value.indices[:-1] == (number,)
        position = value.indices[-1]
        return any(
            _segment_number(begin) == number
            and self._proves(Binary("sub", position, begin))
            and self._proves(Binary("sub", Binary("sub", end, position), ONE))
            for begin, end in self._segments_mentioned(value, value, indptr)
        )

    def _is_subset(self, left: str, right: str) -> bool:
        relations = self._facts.about(left, Relation)
        return any((fact.kind, fact.right) == ("subset", right) for fact in relations)

    def _segment_searched(self, search: Search) -> Expr | None:
        """Return the number of the segment that a search covers as a whole, or None."""
        offset = offset_of(search.begin, search.end)
        segments = self._facts.last(search.buffer, SortedSegments)
        if offset is None or segments is None or offset.buffer != segments.indptr:
            return None
        return offset.indices[0] if len(offset.indices) == 1 else None

    def _about_prefix_sum(self, load: Load, goal: Affine) -> Iterator[Affine]:
        """`ProductSteps`: the difference of adjacent elements equals the product of the differences of
        `left` and `right`. Instantiated only if the goal reads both arrays, since only then can these
        products cancel."""
        fact = self._facts.last(load.buffer, ProductSteps)
        if fact is None:
            return
        read = {node.buffer: node for atom in goal.terms for node in walk(atom) if _is_read(node)}
        if fact.left not in read or fact.right not in read:
            return
        at = load.indices[-1]
        # The element may be either end of a step: P[q + 1] - P[q] and P[q] - P[q - 1].
        for position in (at, expr_of(affine_of(sub(at, ONE)))):
            step, *steps = (
                _step(array, position) for array in (load, read[fact.left], read[fact.right])
            )
            total = multiply(*steps)
            if total is not None:
                rest = step - total
                yield from (rest, scale(rest, -1))

    def _monotone_inequalities(
        self, atom: Expr, load: Load, other: Expr, neighbor: Load
    ) -> Iterator[Affine]:
        """`Monotone`: two elements are ordered as their indices are."""
        apart = Binary("sub", load.indices[-1], neighbor.indices[-1])
        # Both orders are tried: which of the two positions is greater depends on the goal,
        # not on the loads.
        if self._proves(apart):
            yield affine_of(Binary("sub", atom, other))
        if self._proves(Binary("sub", neighbor.indices[-1], load.indices[-1])):
            yield affine_of(Binary("sub", other, atom))

    def _segment_inequalities(
        self, first: tuple[Expr, Load], second: tuple[Expr, Load]
    ) -> Iterator[Affine]:
        """`SortedSegments`: values of one segment are ordered as their positions are. Unique integers are
        at least as far apart as their positions."""
        for fact in self._facts.about(first[1].buffer, SortedSegments):
            for (low, start), (high, end) in ((first, second), (second, first)):
                apart = Binary("sub", end.indices[-1], start.indices[-1])
                if self._proves(apart) and self._is_one_segment(start, end, fact.indptr):
                    rise = affine_of(Binary("sub", high, low))
                    # Strictly increasing integers rise by at least one per position.
                    yield rise - affine_of(apart) if fact.unique else rise

    def _is_one_segment(self, start: Load, end: Load, indptr: str | None) -> bool:
        """Return whether two loads are proved to read one segment. They have the same outer indices, and
        `end` does not come before `start`."""
        if indptr is None:
            return True
        is_fiber = len(start.indices) > 1
        segments = self._fiber if is_fiber else self._candidate_segments
        for begin, stop in segments(start, end, indptr):
            left = Binary("sub", Binary("sub", stop, end.indices[-1]), ONE)
            if self._proves(Binary("sub", start.indices[-1], begin)) and self._proves(left):
                return True
        return False

    def _fiber(self, start: Load, end: Load, indptr: str) -> Iterator[tuple[Expr, Expr]]:
        """Yield the segment of two loads at the position stage: 0 and the length of the fiber that their
        outer indices select, since positions are counted from the beginning of a fiber there."""
        forms = (affine_of(start.indices[-1]), affine_of(end.indices[-1]), *self._constraints)
        nodes = (node for form in forms for atom in form.terms for node in walk(atom))
        fiber = start.indices[:-1]
        for node in nodes:
            # A predicated load has another value where the predicate is false.
            if not isinstance(node, Load) or (node.buffer, node.predicate) != (indptr, None):
                continue
            if node.indices == fiber:
                yield ZERO, length_of(node)
                return

    def _candidate_segments(
        self, start: Load, end: Load, indptr: str
    ) -> Iterator[tuple[Expr, Expr]]:
        """Yield begin and end of the segments that two positions may be in: those with known ends first."""
        values = self._facts.about(indptr, HasValue)
        for first, second in permutations(values, 2):
            if _is_equal(add(first.index, ONE), second.index):
                yield first.value, second.value
        yield from self._segments_mentioned(start, end, indptr)

    def _segments_mentioned(
        self, start: Load, end: Load, indptr: str
    ) -> Iterator[tuple[Expr, Expr]]:
        """Yield begin and end of the segments whose offsets occur in the positions or in constraints."""
        forms = (affine_of(start.indices[-1]), affine_of(end.indices[-1]), *self._constraints)
        atoms = (atom for form in forms for atom in form.terms)
        offsets = dict.fromkeys(
            node for atom in atoms for node in walk(atom) if _is_offset(node, indptr)
        )
        # Each candidate costs two side conditions, so deep nests of rows would exhaust the budget.
        for offset in list(offsets)[:MAX_SEGMENTS]:
            yield widen(offset), widen(next_offset(offset))


def _is_read(node: Node) -> TypeGuard[Load]:
    return isinstance(node, Load) and node.predicate is None and len(node.indices) == 1


def _is_offset(node: Node, indptr: str) -> TypeGuard[Load]:
    return _is_read(node) and node.buffer == indptr


def _step(load: Load, position: Expr) -> Affine:
    """Return the difference of the elements of an array at a position and at the next one."""
    return affine_of(length_of(Load(load.buffer, (position,), load.dtype)))


def _segment_number(begin: Expr) -> Expr | None:
    """Return the number of the segment that begins at an element of its indptr."""
    load = strip_widening(begin)
    return load.indices[0] if isinstance(load, Load) else None


def _loads_beside(load: Load, goal: Affine) -> Iterator[tuple[Expr, Load]]:
    """Yield other loads of the array in a goal that differ in the last index only."""
    for other in goal.terms:
        inner = strip_widening(other)
        # Loads that differ in outer indices are of different fibers, which no fact relates.
        if not isinstance(inner, Load) or inner == load or inner.predicate is not None:
            continue
        if inner.buffer == load.buffer and inner.indices[:-1] == load.indices[:-1]:
            yield other, inner


def _is_equal(lhs: Expr, rhs: Expr) -> bool:
    return distance(lhs, rhs) == 0
