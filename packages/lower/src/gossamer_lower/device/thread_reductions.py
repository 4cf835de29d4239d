"""Finds reductions over the threads of a block: accumulations in loops that are bound to threads, into
elements that do not depend on the thread."""

from __future__ import annotations

from collections.abc import Mapping, Set

import msgspec

from gossamer_ir.analysis.statements.reductions import Reduction, match_reduction
from gossamer_ir.analysis.statements.thread_axes import is_thread_axis
from gossamer_ir.core.build import ZERO, integer_value
from gossamer_ir.core.dtypes import DType
from gossamer_ir.core.expression_kinds import dtype_of
from gossamer_ir.core.statement_kinds import effects_of
from gossamer_ir.nodes import Compare, Expr, For, If, Let, Stmt, Store, ThreadTag
from gossamer_ir.traversal.access_types import READS
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.names import bound_vars
from gossamer_ir.traversal.walk import collect, stmts


class ThreadSum(msgspec.Struct, frozen=True):
    """An accumulation that threads make into one element. `conditions` are those under which the statement
    accumulates at all, and so the element exists."""

    reduction: Reduction
    conditions: tuple[Expr, ...]

    @property
    def store(self) -> Store:
        """The accumulation itself."""
        return self.reduction.store


class ThreadReduction(msgspec.Struct, frozen=True):
    """A statement in which threads do nothing else than to accumulate. `extents` are those of the loops
    over these threads."""

    stmt: Stmt
    extents: Mapping[ThreadTag, int]
    sums: tuple[ThreadSum, ...]


def thread_reduction(stmt: Stmt) -> ThreadReduction | None:
    """Return the reduction over threads that a statement is; None for any other.

    >>> from gossamer_ir.script import parse_module
    >>> flat = parse_module('''
    ... @T.prim_func
    ... def total(x: T.handle, y: T.handle, n: T.int64) -> None:
    ...     T.stage("flat")
    ...     X = T.match_buffer(x, (n,), "float32")
    ...     Y = T.match_buffer(y, (1,), "float32")
    ...     for i in T.serial(n // 32):
    ...         for t in T.thread_binding(32, thread="threadIdx.x"):
    ...             Y[0] = Y[0] + X[i * 32 + t]
    ... ''')
    >>> thread_reduction(flat.functions[0].body[0]).extents
    {'threadIdx.x': 32}
    """
    finder = _Finder(bound_vars((stmt,)), _buffers_written((stmt,)))
    if not finder.visit(stmt, {}, ()) or not finder.sums:
        return None
    extents = finder.extents[0]
    names = [thread_sum.store.buffer for thread_sum in finder.sums]
    is_of_one_kind = all(extents_of_sum == extents for extents_of_sum in finder.extents) and len(
        {*names}
    ) == len(names)
    reads = [read.buffer for read in collect(READS, stmt) if read.buffer in names]
    # Each sum reads its own element; any other read could see a partial one.
    if not extents or not is_of_one_kind or len(reads) != len(names):
        return None
    return ThreadReduction(stmt, extents, tuple(finder.sums))


class _Finder:
    """Visits the statements of a reduction. `bound` are the variables that are bound in it."""

    def __init__(self, bound: Set[str], written: Set[str]) -> None:
        self.sums: list[ThreadSum] = []
        self.extents: list[Mapping[ThreadTag, int]] = []
        self._bound, self._written = bound, written

    # Other statements: nothing is concluded from them.
    def visit(
        self, stmt: Stmt, extents: Mapping[ThreadTag, int], conditions: tuple[Expr, ...]
    ) -> bool:
        """Return whether a statement may be part of a reduction, and note what it accumulates."""
        match stmt:
            case For() if stmt.thread is not None:
                extent = integer_value(stmt.extent)
                if not _is_loop_of_block(stmt, extent) or stmt.thread in extents or extent is None:
                    return False
                return self._visit_bodies(stmt, {**extents, stmt.thread: extent}, conditions)
            case For(kind="serial"):
                runs = Compare("gt", stmt.extent, ZERO)
                more = () if integer_value(stmt.extent) else self._invariant(runs)
                return self._visit_bodies(stmt, extents, (*conditions, *more))
            case If():
                return self._visit_bodies(stmt, extents, conditions)
            case Let():
                return True
            case Store():
                return self._note(stmt, extents, conditions)
        return False

    def _visit_bodies(
        self, stmt: Stmt, extents: Mapping[ThreadTag, int], conditions: tuple[Expr, ...]
    ) -> bool:
        return all(
            self.visit(
                inner,
                extents,
                (*conditions, *(c for e in body.conditions for c in self._invariant(e))),
            )
            for body in effects_of(stmt).bodies
            for inner in body.stmts
        )

    def _note(
        self, store: Store, extents: Mapping[ThreadTag, int], conditions: tuple[Expr, ...]
    ) -> bool:
        reduction = match_reduction(store)
        is_scalar = not DType.parse(dtype_of(store.value)).is_vector
        if reduction is None or store.predicate is not None or not is_scalar:
            return False
        if not all(map(self._is_invariant, store.indices)):
            return False
        self.sums.append(ThreadSum(reduction, conditions))
        self.extents.append(extents)
        return True

    def _invariant(self, condition: Expr) -> tuple[Expr, ...]:
        """Return a condition if it has one value throughout the reduction, else nothing."""
        return (condition,) if self._is_invariant(condition) else ()

    def _is_invariant(self, expr: Expr) -> bool:
        reads = {read.buffer for read in collect(READS, expr)}
        return free_vars(expr).isdisjoint(self._bound) and reads.isdisjoint(self._written)


def _is_loop_of_block(loop: For, extent: int | None) -> bool:
    is_of_block = is_thread_axis(loop.thread)
    return is_of_block and extent is not None and integer_value(loop.start) == 0


def _buffers_written(body: tuple[Stmt, ...]) -> Set[str]:
    return {write.buffer for stmt in stmts(body) for write in effects_of(stmt).writes}
