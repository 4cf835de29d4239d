"""Vectorized loops become vector code: the loop variable becomes a ramp, conditions become masks.

The number of lanes is constant or a multiple of vscale. A reduction over the lanes keeps one partial result
per lane across the enclosing serial loop, starting from the identity of the reducer, and combines the lanes
once after that loop.
"""

from __future__ import annotations

from typing import Any

from gossamer_ir.analysis.lane_projection import lane_count
from gossamer_ir.analysis.statements.atomic_accumulation import (
    is_atomic,
    is_atomic_update,
    is_shared,
    plain_update,
)
from gossamer_ir.arith.simplify import simplify_body
from gossamer_ir.core.build import ONE, add, sub
from gossamer_ir.core.expression_kinds import has_lanes
from gossamer_ir.nodes import Allocate, Expr, For, Function, Module, Ramp, Stmt, Store
from gossamer_ir.traversal.buffer_definitions import buffers_allocated
from gossamer_ir.traversal.rewrite import rewrite_body
from gossamer_lower.lowering_pass import lowering_pass, map_functions
from gossamer_lower.statements.point_visitor import PointVisitor
from gossamer_lower.statements.rebuild import with_body, with_hoisted_start
from gossamer_lower.vector.body_vectorizer import BodyVectorizer
from gossamer_lower.vector.lane_reductions import LaneReducer, lane_reduction, reduce_at_once


@lowering_pass(
    takes=("loop",),
    without=("blocks",),
    removes=("vectorized loops",),
    is_stable=True,
    before={
        "unroll_loops": "partial results are kept across an unrolled loop, which must still be one"
    },
)
def vectorize_loops(module: Module) -> Module:
    """Turn vectorized loops into vector code, with conditions as masks.

    Raises `UnsupportedError` (`lower.vectorize_loops.no_vector_form`) for statements and expressions without
    a vector form.

    >>> from gossamer_testkit.examples import program
    >>> from gossamer_testkit.show import body_text
    >>> before = program('''
    ... for i in T.serial(n // 8):
    ...     for l in T.vectorized(8):
    ...         Y[i * 8 + l] = X[i * 8 + l] * 2.0
    ... ''')
    >>> print(body_text(vectorize_loops(before)))
    for i in T.serial(n // 8):
        Y[T.ramp(i * 8, 1, 8)] = X[T.ramp(i * 8, 1, 8)] * T.broadcast(2.0, 8)
    """
    return map_functions(module, _vectorize_function)


def _vectorize_function(function: Function) -> Function:
    vectorizer = _LoopVectorizer(function)
    return with_body(function, vectorizer.body(function.body))


class _LoopVectorizer(PointVisitor):
    """Vectorizes the loops of one function."""

    def __init__(self, function: Function) -> None:
        super().__init__(function)
        self._reducer = LaneReducer(self.point, self.namer)
        self._locals: dict[str, tuple[Expr, ...]] = {}
        self._allocated = buffers_allocated(function.body)

    # Other statements: only their bodies are visited.
    def stmt(self, stmt: Stmt) -> tuple[Stmt, ...]:
        match stmt:
            case Allocate():
                if stmt.buffer.scope == "local":
                    self._locals[stmt.buffer.name] = stmt.buffer.shape
            case For(kind="vectorized"):
                return self._vectorize_loop(stmt)
            case For():
                return self._loop(stmt)
        return (self.inside(stmt),)

    def _loop(self, loop: For) -> tuple[Stmt, ...]:
        # Parallel iterations would race for the partial results.
        is_ordered = loop.kind in ("serial", "unrolled")
        partial = self._reducer.with_partial_results(loop) if is_ordered else None
        if partial is not None:
            return partial
        inner = self.inside(loop)
        # Lanes of one store may name one element, as in `Y[P[i]] += X[i]`: a scatter would keep the
        # last only.
        return (
            with_body(inner, self._with_accumulation_by_lane(inner.body, loop))
            if is_atomic(loop)
            else inner,
        )

    def _with_accumulation_by_lane(self, body: tuple[Stmt, ...], loop: For) -> tuple[Stmt, ...]:
        """Return the body of an atomic loop with accumulations of vectors into shared elements done lane by
        lane, unless the lanes are evidently different elements, as the verifier requires."""

        def rule(node: Any) -> tuple[Stmt, ...] | None:
            is_shared_store = isinstance(node, Store) and is_shared(loop, node.buffer)
            if not is_shared_store or node.buffer in self._allocated or is_atomic_update(node):
                return None
            # Imported late: few programs accumulate into shared elements.
            from gossamer_lower.statements.lane_accumulation import accumulate_by_lane

            return accumulate_by_lane(node, self.namer, plain_update)

        return rewrite_body(body, rule)

    def _vectorize_loop(self, loop: For) -> tuple[Stmt, ...]:
        # First, since the general form below refuses a store to one element from all lanes.
        reduction = lane_reduction(loop)
        if reduction is not None:
            return reduce_at_once(loop, reduction, self.namer)
        starts, loop = with_hoisted_start(loop, self.function, self.namer)
        vectorizer = BodyVectorizer(loop, self.namer, is_whole=self.is_whole)
        return (*starts, *simplify_body(vectorizer.body(self.body(loop.body), None)))

    def is_whole(self, buffer_name: str, indices: tuple[Expr, ...]) -> bool:
        """Return whether all lanes of an access of a local buffer are in bounds, so that it needs no
        mask: other threads do not see a local buffer, so masked-off lanes may write their old values."""
        shape, (*outer, last) = self._locals.get(buffer_name), indices
        if (
            shape is None
            or any(map(has_lanes, outer))
            or not isinstance(last, Ramp)
            or last.stride != ONE
        ):
            return False
        end = add(last.base, sub(lane_count(last.lanes), ONE))
        return self.point.is_nonnegative(last.base) and self.point.is_in_range(end, shape[-1])
