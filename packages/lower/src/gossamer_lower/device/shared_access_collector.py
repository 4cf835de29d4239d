"""Finds the accesses of memory that the threads of a block share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from gossamer_ir.analysis.invariants import mutable_buffers
from gossamer_ir.analysis.statements.thread_axes import is_thread_axis
from gossamer_ir.core.build import ZERO, index_var, integer_value
from gossamer_ir.core.statement_kinds import effects_of, is_stmt
from gossamer_ir.dependence.constant_points import ConstantPoints, TriedAccess, differ_at_points
from gossamer_ir.nodes import Atomic, Compare, Expr, For, Function, Load, Search, Stmt, Store
from gossamer_ir.traversal.access_types import READS
from gossamer_ir.traversal.buffer_definitions import allocations
from gossamer_ir.traversal.buffer_uses import buffers_read
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.statement_queries import exchanged_vars, threads_of, values_bound_in
from gossamer_ir.traversal.substitute import resolve, substitute
from gossamer_ir.traversal.walk import collect, stmts
from gossamer_lower.device.let_dependences import let_dependences
from gossamer_lower.device.shared_accesses import SharedAccess
from gossamer_lower.device.thread_context import ThreadContext


class SharedAccessCollector:
    """Finds the accesses in a kernel, whose loops over threads have these axes and extents.

    `lets` are the values of its lets, `copied` the accesses of copies that were found so far: their threads
    write them at some time before they wait for them.
    """

    def __init__(self, function: Function, extents: Mapping[str, Expr]) -> None:
        allocated = allocations(stmts(function.body))
        self._private = {buffer.name for buffer in allocated if buffer.scope != "shared"}
        self.lets = values_bound_in(function.body)
        self.copied: set[SharedAccess] = set()
        self._has_threads = any(map(is_thread_axis, extents))
        self._block_axes = {
            axis: For(axis, ZERO, extent, ())
            for axis, extent in extents.items()
            if is_thread_axis(axis) and integer_value(extent) != 1
        }
        self._answers: dict[tuple[tuple[Expr, ...], frozenset[str]], bool] = {}
        self._changing = mutable_buffers(function)
        self._exchanged = exchanged_vars(function.body)

    def collect(
        self, context: ThreadContext, *nodes: Stmt | Expr, first: frozenset[str] = frozenset()
    ) -> set[SharedAccess]:
        """Return the accesses of statements and expressions; of the axes `first`, only the first thread makes
        them. Those that copies write are added to `copied`, too."""
        collected: set[SharedAccess] = set()
        if self._has_threads:
            for node in nodes:
                collected.update(self._accesses_of(node, context.bound, first))
        return collected

    # Other statements: only loops bind threads, and the bodies of asynchronous copies only store.
    def _accesses_of(
        self, node: Stmt | Expr, bound: Mapping[str, str], first: frozenset[str]
    ) -> Iterator[SharedAccess]:
        if not is_stmt(node):
            yield from self._shared_accesses(collect(READS, node), bound, first, is_write=False)
            return
        if isinstance(node, For) and node.thread is not None:
            bound = {**bound, node.thread: node.var}
        effects = effects_of(node)
        reads = (*effects.reads, *collect(READS, *effects.evaluates))
        yield from self._shared_accesses(reads, bound, first, is_write=False)
        yield from self._shared_accesses(effects.writes, bound, first, is_write=True)
        if threads_of(node).is_async:
            stores = [
                stmt for body in effects.bodies for stmt in body.stmts if isinstance(stmt, Store)
            ]
            for access in self._shared_accesses(stores, bound, first, is_write=True):
                self.copied.add(replace(access, indices=(), is_by_one=False))
        for body in effects.bodies:
            selected = first | _axes_of_first(body.conditions, bound)
            for inner in body.stmts:
                yield from self._accesses_of(inner, bound, selected)

    def _shared_accesses(
        self,
        nodes: Sequence[Load | Search | Store | Atomic],
        bound: Mapping[str, str],
        first: frozenset[str],
        *,
        is_write: bool,
    ) -> Iterator[SharedAccess]:
        by_var = {var: index_var(axis) for axis, var in bound.items()}
        for node in nodes:
            if not self.is_private(node):
                indices = tuple(substitute(index, by_var) for index in getattr(node, "indices", ()))
                is_by_one = self._determine_thread(indices, by_var, first)
                # The value of a let may be computed from the number of a thread.
                varying = free_vars(*indices) & {*self._block_axes, *self.lets}
                yield SharedAccess(
                    node.buffer, indices, is_write, first, is_by_one, frozenset(varying)
                )

    def _determine_thread(
        self, indices: Sequence[Expr], by_var: Mapping[str, Expr], first: frozenset[str]
    ) -> bool:
        """Return whether different threads have different indices, apart from axes of which only the first
        thread makes the access. Conditions do not count: they may not hold for another access."""
        names = let_dependences(*indices, value_of=self.lets.get) & self.lets.keys()
        values = {name: substitute(self.lets[name], by_var) for name in names}
        query = tuple(resolve(index, values) for index in indices), first
        if query not in self._answers:
            self._answers[query] = self._differ(*query)
        return self._answers[query]

    def _differ(self, indices: tuple[Expr, ...], first: frozenset[str]) -> bool:
        loops = {axis: loop for axis, loop in self._block_axes.items() if axis not in first}

        def is_equal(expr: Expr) -> bool:
            is_unchanged = buffers_read(expr).isdisjoint(self._changing)
            return is_unchanged and free_vars(expr).isdisjoint({*loops, *self._exchanged})

        points = ConstantPoints(loops.values())
        return differ_at_points([*loops], [TriedAccess(indices, points, ())], equal=is_equal)

    def is_private(self, node: Load | Search | Store | Atomic) -> bool:
        """Return whether a node accesses memory of one thread."""
        return node.buffer in self._private


def _axes_of_first(conditions: Iterable[Expr], bound: Mapping[str, str]) -> frozenset[str]:
    """Return the axes of which conditions select the first thread."""
    equalities = [test for test in conditions if isinstance(test, Compare) and test.op == "eq"]
    first = {test.lhs for test in equalities if test.rhs == ZERO}
    return frozenset(axis for axis, var in bound.items() if index_var(var) in first)
