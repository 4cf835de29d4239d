"""The arrays in which the results of searches are stored: an index for each iteration, and their range."""

from __future__ import annotations

from gossamer_ir.analysis.accesses.init_nests import LoopOrCondition
from gossamer_ir.analysis.invariants import invariant_facts
from gossamer_ir.analysis.proofs.program_point import ProgramPoint
from gossamer_ir.arith.offsets import offset_of_length
from gossamer_ir.arith.simplify import simplify
from gossamer_ir.core.axis_kinds import indptr_of
from gossamer_ir.core.build import ONE, ZERO, add, index, index_var, integer_value, sub, widen
from gossamer_ir.facts.fact_index import fact_index
from gossamer_ir.nodes import Binary, Buffer, Compare, Expr, For, Function, InRange, Search
from gossamer_ir.traversal.access_types import READS
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.walk import contains


class ResultArrays:
    """Lays out the arrays for the results of searches in one function."""

    def __init__(self, function: Function) -> None:
        self._function = function
        self._sizes = {
            fact.buffer: simplify(sub(fact.high, ONE))
            for fact in fact_index(invariant_facts(function)).facts_of_type(InRange)
            if fact.low == ZERO
        }
        self._shapes = {
            buffer.name: buffer.shape
            for buffer in function.buffers
            if isinstance(buffer, Buffer) and buffer.handle is not None
        }
        self._sizes |= {
            buffer.name: indptr.nnz
            for buffer in function.buffers
            for axis in function.axes
            if (indptr := indptr_of(axis)) is not None
            and indptr.handle == buffer.handle
            and indptr.nnz is not None
        }

    def dimensions(self, loops: list[For]) -> list[tuple[Expr, Expr]] | None:
        """Return an index and an extent for each dimension; None if the iterations cannot be numbered."""
        names = {loop.var for loop in loops}
        dimensions: list[tuple[Expr, Expr]] = []
        for loop in loops:
            var = index_var(loop.var)
            if loop.start != ZERO:
                return None
            if not free_vars(loop.extent) & names and _is_size(loop.extent):
                dimensions.append((var, loop.extent))
            elif not self._add_fiber(dimensions, loop, names):
                return None
        return dimensions

    def _add_fiber(self, dimensions: list[tuple[Expr, Expr]], loop: For, names: set[str]) -> bool:
        offset = offset_of_length(loop.extent)
        size = self._sizes.get(offset.buffer) if offset is not None else None
        if offset is None or size is None or len(offset.indices) > 1 or not _is_size(size):
            return False
        (parent,) = offset.indices
        element = (add(widen(offset), index_var(loop.var)), size)
        for number, (at, _) in enumerate(dimensions):
            if at == parent:
                dimensions[number] = element
                return True
        if free_vars(parent) & names:
            return False
        dimensions.append(element)
        return True

    def facts(
        self, value: Expr, kept: tuple[LoopOrCondition, ...], buffer: Buffer
    ) -> tuple[InRange, ...]:
        """Return a fact with the range of the results, if one is proved at the search."""
        point = point_inside(self._function, kept)
        search, offset = _parts(value)
        fixed = frozenset(param.name for param in self._function.params)
        ends = [
            end for end in (search.begin, search.end) if free_vars(end) <= fixed and _is_size(end)
        ]
        lows = [*(_shift_end(end, offset) for end in ends), ZERO, index(-1)]
        ends += [size for size in self._shapes.get(search.buffer, ())[-1:] if _is_size(size)]
        highs = [_shift_end(end, offset + more) for end in ends for more in (0, 1)]
        low = next((at for at in lows if point.proves(Compare("ge", value, at))), None)
        high = next((at for at in highs if point.proves(Compare("lt", value, at))), None)
        return () if low is None or high is None else (InRange(buffer.name, low, high),)


def point_inside(function: Function, around: tuple[LoopOrCondition, ...]) -> ProgramPoint:
    """Return the program point inside these loops and conditions."""
    point = ProgramPoint(function)
    for item in around:
        if isinstance(item, For):
            point.bind_loop(item)
            point.assume_range(item, item.extent)
        else:
            point.assume(item)
    return point


def _shift_end(end: Expr, by: int) -> Expr:
    return sub(end, index(-by)) if by < 0 else add(end, index(by))


# Other expressions: not optimized.
def _parts(value: Expr) -> tuple[Search, int]:
    """Return a search and the constant that is added to it."""
    if isinstance(value, Search):
        return value, 0
    assert isinstance(value, Binary)
    search, offset = _parts(value.lhs)
    more = integer_value(value.rhs) or 0
    return search, offset + (more if value.op == "add" else -more)


def _is_size(extent: Expr) -> bool:
    return not contains(READS, extent)
