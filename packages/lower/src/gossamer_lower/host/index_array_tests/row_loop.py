"""Finds the parallel loop over the rows of a compressed axis, and proves which elements iterations read."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from gossamer_ir.analysis.lane_projection import lane_of, lanes_of, lanes_of_access
from gossamer_ir.core.build import ONE, ZERO, add, index, index_var, sub, widen
from gossamer_ir.core.dtypes import DType
from gossamer_ir.core.expression_kinds import dtype_of
from gossamer_ir.core.statement_kinds import effects_of
from gossamer_ir.facts.fact_index import fact_index
from gossamer_ir.nodes import (
    Binary,
    Broadcast,
    Buffer,
    Expr,
    Fact,
    For,
    Function,
    HasValue,
    InRange,
    Load,
    Module,
    Monotone,
    Node,
    ParallelFor,
    Ramp,
    Stmt,
    Store,
    Var,
)
from gossamer_ir.traversal.access_types import ACCESSES, HINTS
from gossamer_ir.traversal.walk import collect
from gossamer_lower.bounds_checks.unproved_accesses import UnprovedAccesses
from gossamer_lower.statements.point_visitor import PointVisitor


class CompressedArrays(msgspec.Struct, frozen=True):
    """The index arrays of a compressed axis without further promises: the values of `indptr` never decrease
    from 0 to `nnz`, those of `indices` are in [0, columns)."""

    indptr: Buffer
    indices: Buffer
    rows: Expr
    columns: Expr
    nnz: Expr

    @property
    def names(self) -> frozenset[str]:
        """The names of both buffers."""
        return frozenset((self.indptr.name, self.indices.name))

    def facts(self) -> frozenset[Fact]:
        """Return the facts that hold for the arrays."""
        name = self.indptr.name
        return frozenset(
            (
                InRange(name, ZERO, add(self.nnz, ONE)),
                Monotone(name),
                HasValue(name, ZERO, ZERO),
                HasValue(name, self.rows, self.nnz),
                InRange(self.indices.name, ZERO, self.columns),
            )
        )


class RowLoop(msgspec.Struct, frozen=True):
    """The launch of a parallel loop over all rows, and the function that runs a range of them in a loop."""

    arrays: CompressedArrays
    launch: ParallelFor
    function: Function
    loop: For


# Other statements: nothing is concluded from them.
def row_loop_of(module: Module) -> RowLoop | None:
    """Return the parallel loop of a flat module if each of its iterations only uses its own row of the index
    arrays: values of other rows are at most addresses of prefetches. None if anything is not proved."""
    if len(module.functions) != 2:
        return None
    (entry,) = (candidate for candidate in module.functions if candidate.name == module.entry)
    (function,) = (candidate for candidate in module.functions if candidate is not entry)
    launches = [stmt for stmt in entry.body if isinstance(stmt, ParallelFor)]
    loops = [stmt for stmt in function.body if isinstance(stmt, For)]
    if len(launches) != 1 or len(loops) != 1:
        return None
    arrays = _compressed_arrays(entry, launches[0].extent)
    if arrays is None:
        return None
    row_loop = RowLoop(arrays, launches[0], function, loops[0])
    is_proved = (
        _launches_all_rows(row_loop)
        and _is_only_use(entry, row_loop)
        and _runs_its_range(row_loop)
        and _uses_own_rows(row_loop)
    )
    return row_loop if is_proved else None


def _compressed_arrays(function: Function, rows: Expr) -> CompressedArrays | None:
    """Return the arrays of an axis with this number of rows that all facts of a function are about; None if
    there are other facts."""
    buffers = {buffer.name: buffer for buffer in function.buffers if isinstance(buffer, Buffer)}
    facts = fact_index(function.facts)
    offsets = [fact.buffer for fact in facts.facts_of_type(Monotone)]
    others = [fact for fact in facts.facts_of_type(InRange) if fact.buffer not in offsets]
    if len(offsets) != 1 or len(others) != 1:
        return None
    indptr, indices = (buffers[name] for name in (offsets[0], others[0].buffer))
    arrays = CompressedArrays(indptr, indices, rows, others[0].high, indices.shape[0])
    is_flat = len(indices.shape) == 1 and indptr.shape == (add(rows, ONE),)
    return arrays if is_flat and arrays.facts() >= set(function.facts) else None


def _launches_all_rows(row_loop: RowLoop) -> bool:
    """Return whether the loop runs over all rows, and its function has the names of the entry."""
    launch, function = row_loop.launch, row_loop.function
    passed = [arg.name if isinstance(arg, Var) else None for arg in launch.args]
    return (
        launch.start == ZERO
        and launch.function == function.name
        and passed == [param.name for param in function.params[2:]]
        and row_loop.arrays.facts() >= set(function.facts)
    )


def _is_only_use(entry: Function, row_loop: RowLoop) -> bool:
    """Return whether the entry reads the arrays for the weight of the loop only: the offset of a row."""
    row = index_var(row_loop.launch.var)
    reads = list(_reads(row_loop.arrays, entry.body))
    weight = row_loop.launch.weight
    expected = [] if weight is None else list(_reads(row_loop.arrays, (weight,)))
    return len(reads) == len(expected) and all(
        isinstance(read, Load)
        and read.buffer == row_loop.arrays.indptr.name
        and read.indices == (row,)
        for read in expected
    )


def _runs_its_range(row_loop: RowLoop) -> bool:
    """Return whether the loop runs over the range that the function is called for, and only the loop uses the
    arrays."""
    begin, end, *_ = row_loop.function.params
    first, last = index_var(begin.name), index_var(end.name)
    loop = row_loop.loop
    outside = (stmt for stmt in row_loop.function.body if stmt is not loop)
    return (
        loop.kind == "serial"
        and loop.start == first
        and loop.extent == sub(last, first)
        and not any(True for _ in _reads(row_loop.arrays, tuple(outside)))
    )


def _uses_own_rows(row_loop: RowLoop) -> bool:
    visitor = _OwnRowVisitor(row_loop)
    visitor.body(row_loop.function.body)
    return visitor.is_proved


def _reads(arrays: CompressedArrays, nodes: tuple[Node, ...]) -> Iterator[Node]:
    """Yield the accesses of the arrays; a write of them, too, so that it is nowhere expected."""
    for node in collect(ACCESSES, *nodes):
        if node.buffer in arrays.names:
            yield node


class _OwnRowVisitor(PointVisitor):
    """Proves that the loop reads the offsets of its row and of the next one only, and that each index which
    it uses is between them."""

    def __init__(self, row_loop: RowLoop) -> None:
        super().__init__(row_loop.function)
        self.is_proved = True
        self._arrays = row_loop.arrays
        self._unproved = UnprovedAccesses(self.point)
        row = index_var(row_loop.loop.var)
        name, dtype = self._arrays.indptr.name, self._arrays.indptr.dtype
        self._offsets = [Load(name, (at,), dtype) for at in (row, add(row, ONE))]
        first, last = map(widen, self._offsets)
        # A buffer of its own name, so that an access of it is in bounds if and only if the row
        # has the element.
        self._first, self._row = first, f"row of {self._arrays.indices.name}"
        # The launch passes ranges of [0, rows): see `_launches_all_rows`.
        for bound in row_loop.function.params[:2]:
            limit = add(self._arrays.rows, ONE)
            self.point.assume_loop(For(bound.name, ZERO, limit, ()))
        self.point.shapes[self._row] = (sub(last, first),)

    def stmt(self, stmt: Stmt) -> tuple[Stmt, ...]:
        effects = effects_of(stmt)
        accesses = [*_reads(self._arrays, effects.evaluates), *effects.writes]
        for access in accesses:
            self.is_proved = self.is_proved and self._is_own(access, stmt)
        return (self.inside(stmt),)

    def _is_own(self, access: Node, stmt: Stmt) -> bool:
        """Return whether an access of a statement is one of the row's own elements."""
        if isinstance(access, Load) and access.buffer == self._arrays.indptr.name:
            return access in self._offsets
        if isinstance(access, Load) and access.buffer == self._arrays.indices.name:
            # A prefetch of a wrong address does no harm; the load of the address is in bounds of the array.
            is_wide = DType.parse(dtype_of(access.indices[0])).scalar == "int64"
            return isinstance(stmt, HINTS) or (is_wide and self._is_in_row(access))
        return isinstance(access, Store) and access.buffer not in self._arrays.names

    def _is_in_row(self, load: Load) -> bool:
        (at,) = load.indices
        lanes = lanes_of_access(load)
        if lanes is None:
            return self._unproved.in_any_lane(self._within_row(load, at)) is None
        if load.predicate is None and isinstance(at, Ramp) and not lanes.scalable:
            # A ramp is in the row if its ends are, which are simpler than an arbitrary lane.
            ends = (lane_of(at, index(lane)) for lane in (0, lanes.count - 1))
            scalars = (self._within_row(load, end) for end in ends if end is not None)
            return all(self._unproved.in_any_lane(scalar) is None for scalar in scalars)
        return self._unproved.in_all_lanes_of(self._within_row(load, at), lanes) is None

    def _within_row(self, load: Load, at: Expr) -> Load:
        """Return the load as one of an array that contains the row only."""
        lanes = lanes_of(at)
        first = self._first if lanes is None else Broadcast(self._first, lanes)
        offset = Binary("sub", at, first)
        return replace(load, buffer=self._row, indices=(offset,))
