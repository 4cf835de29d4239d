"""The parts of bounds checks that are not proved at a point of a function."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from gossamer_ir.analysis.lane_projection import LANE, in_lane, lane_count
from gossamer_ir.analysis.proofs.bounded_reads import bounds_of_read
from gossamer_ir.analysis.proofs.program_point import ProgramPoint
from gossamer_ir.core.build import ONE, ZERO, widen
from gossamer_ir.core.conditions import conjunction, in_range, short_circuit_or
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import Binary, Compare, Expr, Lanes, Load, Search, Stmt, Store
from gossamer_ir.traversal.free_vars import free_vars


class UnprovedAccesses:
    """A search for what is not proved about accesses, under the conditions that hold at a point.

    Conditions on the lane of a vectorized loop are kept apart from those of the point: they become masks,
    which protect only accesses that differ between lanes.
    """

    def __init__(self, point: ProgramPoint) -> None:
        self.lane_vars: set[str] = set()
        """The variables of vectorized loops, and those that depend on them."""
        self._point = point
        self._prover, self._overflow = point.prover, point.overflow
        self._lane_conditions: list[Expr] = []
        self._answers: dict[tuple[int, Expr, Expr], tuple[Compare, ...]] = {}

    @contextmanager
    def holding(self, condition: Expr, *, while_running: tuple[Stmt, ...] = ()) -> Iterator[None]:
        """Assume a condition inside the `with` statement, until `while_running` writes its operands."""
        # Assumed only for accesses that become masked: a uniform access is made for all lanes or none.
        if free_vars(condition) & self.lane_vars:
            self._lane_conditions.append(condition)
            yield
            self._lane_conditions.pop()
        else:
            with self._point.under(condition, while_running):
                yield

    def in_any_lane(self, access: Load | Store) -> Expr | None:
        """Return the part of the bounds check that is not proved; None if all of it is.

        An access that is the same in all lanes is not masked, so conditions on the lane do not protect it.
        """
        if not self._lane_conditions:
            return self._bounds_condition(access)
        # The mask is applied to an access whose index depends on the lane.
        is_masked = any(free_vars(index) & self.lane_vars for index in access.indices)
        with self._point.scope():
            for condition in self._lane_conditions if is_masked else ():
                self._point.assume(condition)
            unproved = self._bounds_condition(access)
        if unproved is not None and not is_masked:
            raise _not_masked_error(access)
        return unproved

    def in_all_lanes_of(self, access: Load | Store, lanes: Lanes) -> Expr | None:
        """Return the part of the bounds check of a vector access that is not proved for all lanes."""
        from gossamer_lower.bounds_checks.lane_checks import in_all_lanes, in_end_lanes

        shape, mask = self._point.shapes[access.buffer], access.predicate
        with self._point.scope():
            self._overflow.bind(LANE.name, lane_count(lanes))
            self._prover.assume_range(LANE.name, ZERO, lane_count(lanes))
            if mask is not None:
                self._point.assume(in_lane(mask, LANE))
            return conjunction(
                *(
                    in_all_lanes(part, index, mask=mask, lanes=lanes)
                    if mask is not None or not self._overflow.is_exact(part.lhs)
                    else in_end_lanes(part, index, lanes=lanes)
                    for index, extent in zip(access.indices, shape, strict=True)
                    for part in self._unproved_parts(in_lane(index, LANE), extent)
                )
            )

    def window_condition(self, search: Search) -> Expr | None:
        """Return the part of the bounds check of a search window that is not proved. An empty window
        reads nothing, so it is always in bounds."""
        # The first and the last element are enough, since the window is contiguous.
        pairs = bounds_of_read(search, self._point.shapes[search.buffer])
        unproved = conjunction(*(part for pair in pairs for part in self._unproved_parts(*pair)))
        if unproved is None:
            return None
        return short_circuit_or(Compare("ge", search.begin, search.end), unproved)

    def _bounds_condition(self, access: Load | Store) -> Expr | None:
        shape = self._point.shapes[access.buffer]
        pairs = zip(access.indices, shape, strict=True)
        return conjunction(*(part for pair in pairs for part in self._unproved_parts(*pair)))

    def _unproved_parts(self, index: Expr, extent: Expr) -> tuple[Compare, ...]:
        """Return the parts of 0 <= index < extent that are not proved."""
        # Copies of a body, and nested loads, pose the same question many times.
        question = self._prover.state, index, extent
        parts = self._answers.get(question)
        if parts is None:
            parts = self._answers[question] = tuple(self._parts_to_check(index, extent))
        return parts

    def _parts_to_check(self, index: Expr, extent: Expr) -> Iterator[Compare]:
        """Yield the parts of 0 <= index < extent to check. Proofs are about unbounded integers. For an
        index that may wrap, one proved part alone says nothing: both bounds together exclude the wrap."""
        wide = widen(index)
        is_above, is_below = self._proved_bounds(wide, extent)
        # Both bounds of the unbounded value: then the machine value is the same,
        # even if it wrapped on the way.
        if is_above and is_below:
            return
        is_exact = self._overflow.is_exact(wide)
        above, below = in_range(index, extent)
        if not (is_above and is_exact):
            yield above
        if not (is_below and is_exact):
            yield below

    def _proved_bounds(self, index: Expr, extent: Expr) -> tuple[bool, bool]:
        """Return whether 0 <= index, and whether index < extent, is proved for unbounded integers."""
        if not self._point.is_bound_sound(index, extent):
            return False, False
        left = Binary("sub", Binary("sub", extent, index), ONE)
        return self._prover.proves_nonnegative(index), self._prover.proves_nonnegative(left)


def _not_masked_error(access: Load | Store) -> UnsupportedError:
    return UnsupportedError(
        "lower.insert_bounds_checks.unmasked_lane",
        f"An access of '{access.buffer}' is the same in all lanes of a vectorized loop, and in bounds "
        "only if a condition on the lane holds.",
        hint="Read it before the loop, or do not vectorize.",
    )
