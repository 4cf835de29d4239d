"""Vectorized loops become vector code: the loop variable becomes a ramp, conditions become masks.

The number of lanes is constant or a multiple of vscale. A reduction over the lanes keeps one partial result
per lane across the enclosing serial loop, starting from the identity of the reducer, and combines the lanes
once after that loop.
"""

from __future__ import annotations

from typing import Any

import msgspec

from gossamer_ir.analysis.atomic_accumulation import (
    is_atomic,
    is_atomic_update,
    is_shared,
    plain_update,
)
from gossamer_ir.analysis.linear_form import by_variables
from gossamer_ir.analysis.program_point import ProgramPoint
from gossamer_ir.analysis.reductions import Reduction, identity, match_reduction, reads
from gossamer_ir.arith.affine import UNIT, Affine, combine, expr_of
from gossamer_ir.arith.inequalities import slack_of
from gossamer_ir.arith.simplify import FALSE, simplify_body
from gossamer_ir.core import build
from gossamer_ir.core.dtypes import DType
from gossamer_ir.nodes import (
    Allocate,
    Binary,
    Broadcast,
    Buffer,
    Const,
    Expr,
    For,
    Function,
    If,
    IfThenElse,
    LaneReduce,
    Lanes,
    Load,
    Module,
    Ramp,
    ReduceOp,
    Select,
    Stmt,
    Store,
    VScale,
)  # fmt: skip
from gossamer_ir.traversal.effects import buffers_allocated
from gossamer_ir.traversal.names import Namer, namer_of
from gossamer_ir.traversal.references import free_vars
from gossamer_ir.traversal.rewrite import rewrite_body
from gossamer_ir.traversal.substitute import substitute, substitute_body
from gossamer_ir.traversal.walk import contains
from gossamer_lower.lowering_pass import lowering_pass, map_functions
from gossamer_lower.statement_utils import each, starting_before, with_bodies, with_body, with_sides
from gossamer_lower.vector.helpers.accumulated_by_lane import accumulated_by_lane
from gossamer_lower.vector.helpers.vector_form import Vectors


@lowering_pass(takes=("loop",), without=("blocks",), removes=("vectorized loops",))
def vectorize_loops(module: Module) -> Module:
    """Turns vectorized loops into vector code, with conditions as masks.

    Raises `UnsupportedError` (`lower.vectorize`) for statements and expressions without a vector form.

    >>> from gossamer_lower.examples import body_text, program
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


class _LoopVectorizer:
    """Vectorizes the loops of one function, and tracks the conditions that hold at each statement."""

    def __init__(self, function: Function) -> None:
        self._function = function
        self._namer = namer_of(function)
        self._point = ProgramPoint(function)
        self._locals: dict[str, tuple[Expr, ...]] = {}
        self._allocated = buffers_allocated(function.body)

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        with self._point.scope():
            return each(body, self._learning)

    def _learning(self, stmt: Stmt) -> tuple[Stmt, ...]:
        new = self._statement(stmt)
        self._point.after(stmt)
        return new

    def _statement(self, stmt: Stmt) -> tuple[Stmt, ...]:
        match stmt:
            case Allocate():
                if stmt.buffer.scope == "local":
                    self._locals[stmt.buffer.name] = stmt.buffer.shape
            case For(kind="vectorized"):
                return self._vectorized(stmt)
            case For():
                return self._loop(stmt)
            case If():
                with self._point.under(stmt.condition, stmt.then_body):
                    then_body = self.body(stmt.then_body)
                return (with_sides(stmt, then_body, self.body(stmt.else_body)),)
        return (with_bodies(stmt, self.body),)

    def _loop(self, loop: For) -> tuple[Stmt, ...]:
        is_ordered = loop.kind in ("serial", "unrolled")
        partial = self._partial_results(loop) if is_ordered else None
        if partial is not None:
            return partial
        with self._point.inside(loop):
            body = self.body(loop.body)
        return (with_body(loop, self._in_turn(body, loop) if is_atomic(loop) else body),)

    def _in_turn(self, body: tuple[Stmt, ...], loop: For) -> tuple[Stmt, ...]:
        """Return the body of an atomic loop with accumulations of vectors into shared elements done lane by
        lane, unless the lanes are evidently different elements, as the verifier requires."""

        def rule(node: Any) -> tuple[Stmt, ...] | None:
            is_shared_store = isinstance(node, Store) and is_shared(loop, node.buffer)
            if not is_shared_store or node.buffer in self._allocated or is_atomic_update(node):
                return None
            return accumulated_by_lane(node, self._namer, plain_update)

        return rewrite_body(body, rule)

    def _vectorized(self, loop: For) -> tuple[Stmt, ...]:
        reduction = _lane_reduction(loop)
        if reduction is not None:
            return _reduced_at_once(loop, reduction, self._namer)
        starts, loop = starting_before(loop, self._function, self._namer)
        vectors = Vectors(loop, self._namer, is_whole=self.is_whole)
        return (*starts, *simplify_body(vectors.body(self.body(loop.body), None)))

    def is_whole(self, buffer: str, indices: tuple[Expr, ...]) -> bool:
        """Return whether all lanes of an access of a local buffer are in bounds, so that it needs no
        mask: other threads do not see a local buffer, so masked-off lanes may write their old values."""
        shape, (*outer, last) = self._locals.get(buffer), indices
        if (
            shape is None
            or any(DType.parse(build.dtype_of(index)).is_vector for index in outer)
            or not isinstance(last, Ramp)
            or last.lanes.scalable
            or last.stride != build.ONE
        ):
            return False
        end = build.add(last.base, build.index(last.lanes.count - 1))
        return self._point.is_nonnegative(last.base) and self._point.is_in_range(end, shape[-1])

    def _partial_results(self, outer: For) -> tuple[Stmt, ...] | None:
        """Return a loop around a lane reduction with one partial result per lane; None for other loops."""
        inner = outer.body[0] if len(outer.body) == 1 else None
        if not isinstance(inner, For) or inner.kind != "vectorized":
            return None
        reduction = _lane_reduction(inner)
        if reduction is None:
            return None
        store, op = reduction.reduction.store, reduction.reduction.op
        if any(outer.var in free_vars(index) for index in store.indices):
            return None
        if not self._point.is_invariant(inner.start, outer.body):
            return None
        if not self._is_always_in_bounds(store):
            return None
        peeled = self._peeled(outer, inner, reduction)
        bound = None if peeled is None else peeled.bound
        whole = None if bound is None else self._whole_vectors(outer, inner, bound)
        if outer.kind == "unrolled" and whole is not None and build.integer_value(whole) is None:
            # The number of copies must be constant, so they cover all vectors that there may be.
            peeled, bound, whole = None, None, None
        condition = reduction.condition if peeled is None else peeled.rest
        vectors = Vectors(inner, self._namer)
        dtype, count = build.dtype_of(store.value), _lane_count(vectors.lanes)
        lanes = Buffer(self._namer.fresh(f"{store.buffer}_lanes"), (count,), dtype, None, "local")
        where = (Ramp(build.ZERO, build.ONE, vectors.lanes),)
        partial = Load(lanes.name, where, vectors.dtype(dtype))
        value = _accumulated(
            vectors, partial, msgspec.structs.replace(reduction, condition=condition)
        )
        accumulate = vectors.after_lets(Store(lanes.name, where, value))
        shared = _shared_part(condition, inner.var)
        if shared is not None:
            accumulate = (If(shared, accumulate),)
        main = msgspec.structs.replace(outer, extent=whole or outer.extent, body=accumulate)
        total = Binary(op, _load_of(store), _lanes_combined(op, partial))
        result: list[Stmt] = [Store(store.buffer, store.indices, total)]
        if peeled is not None and whole is not None and _is_masked_rest(inner):
            masked = vectors.after_lets(
                Store(lanes.name, where, _accumulated(vectors, partial, reduction))
            )
            at = {outer.var: whole}
            reached = substitute(peeled.condition, {**at, inner.var: build.ZERO})
            result.insert(0, If(reached, substitute_body(masked, at)))
        elif bound is not None and whole is not None:
            remainder = build.sub(bound, build.mul(whole, inner.extent))
            var = self._namer.fresh(f"{outer.var}_rest")
            at = {outer.var: whole, inner.var: build.index_var(var)}
            result.append(For(var, build.ZERO, remainder, substitute_body((store,), at)))
        start = Store(lanes.name, where, Broadcast(identity(op, dtype), vectors.lanes))
        return simplify_body((Allocate(lanes), start, main, *result))

    def _is_always_in_bounds(self, store: Store) -> bool:
        """Return whether the element is in bounds even if the loop has no iteration, or all lanes are
        masked off: the combined result is stored in any case."""
        return all(
            self._point.is_in_range(index, extent)
            for index, extent in zip(store.indices, self._point.shapes[store.buffer], strict=True)
        )

    def _peeled(self, outer: For, inner: For, reduction: _LaneReduction) -> _Peeled | None:
        """Return the part of the condition that is "position < bound" with a bound known before the loop.

        Whole vectors then need no mask for it; only the remainder does. None if there is no such part, or
        lanes are scalable.
        """
        lanes = build.integer_value(inner.extent)
        parts = list(build.conjuncts(reduction.condition))
        for part in parts:
            bound = _bound_of(outer, inner, part)
            if bound is None or lanes is None or not self._covers(outer, lanes, bound):
                continue
            if not self._point.is_known_before(bound, outer):
                continue
            if not self._is_as_computed(part, bound, loops=(outer, inner)):
                continue
            rest = build.conjoined([other for other in parts if other is not part])
            return _Peeled(part, bound, rest) if rest is None or _is_masked_rest(inner) else None
        return None

    def _is_as_computed(self, condition: Expr, bound: Expr, *, loops: tuple[For, For]) -> bool:
        """Return whether a condition is equivalent to the bound solved from it: neither may overflow."""
        outer, inner = loops
        with self._point.inside(outer), self._point.inside(inner):
            return self._point.is_exact(condition, bound)

    def _whole_vectors(self, outer: For, inner: For, bound: Expr) -> Expr:
        """Return the number of vectors with all lanes below the bound, which may be negative. If all but
        the last are whole, the number is extent - 1, often a constant."""
        last = build.sub(outer.extent, build.ONE)
        reached = build.mul(last, inner.extent)
        if build.integer_value(last) and self._point.is_at_most(reached, bound):
            return last
        whole = build.floordiv(bound, inner.extent)
        return whole if self._point.is_nonnegative(bound) else Binary("max", whole, build.ZERO)

    def _covers(self, outer: For, lanes: int, bound: Expr) -> bool:
        reached = build.mul(outer.extent, build.index(lanes))
        return self._point.is_at_most(bound, reached)


# --- reductions over lanes


class _LaneReduction(msgspec.Struct, frozen=True):
    """The only store of a vectorized loop, which accumulates all lanes in one element."""

    reduction: Reduction
    condition: Expr | None


class _Peeled(msgspec.Struct, frozen=True):
    """The part of a condition that bounds a position, its bound, and the rest of the condition."""

    condition: Expr
    bound: Expr
    rest: Expr | None


def _is_masked_rest(loop: For) -> bool:
    """Return whether the remainder of a reduction is to be one masked vector (`vectorize(rest=)`)."""
    return dict(loop.annotations).get("rest") == "masked"


def _bound_of(outer: For, inner: For, condition: Expr) -> Expr | None:
    """Return the bound if a condition on loops that start at 0 is equivalent to
    `outer * lanes + inner < bound`; else None."""
    slack, lanes = slack_of(condition), build.integer_value(inner.extent)
    if slack is None or lanes is None or (outer.start, inner.start) != (build.ZERO, build.ZERO):
        return None
    form = by_variables(slack, (outer.var, inner.var))
    wanted = {outer.var: Affine({}, -lanes), inner.var: Affine({}, -1)}
    is_bound = form.terms == wanted and not form.opaque
    return expr_of(combine(form.base, UNIT, 1)) if is_bound else None


def _lane_reduction(loop: For) -> _LaneReduction | None:
    condition: Expr | None = None
    body = loop.body
    while len(body) == 1 and isinstance(body[0], If) and not body[0].else_body:
        condition = _both(condition, body[0].condition)
        body = body[0].then_body
    if len(body) != 1 or not isinstance(body[0], Store):
        return None
    if any(loop.var in free_vars(index) for index in body[0].indices):
        return None
    if condition is not None and reads(condition, body[0].buffer):
        return None
    reduction = match_reduction(body[0])
    return None if reduction is None else _LaneReduction(reduction, condition)


def _both(outer: Expr | None, inner: Expr) -> Expr:
    """Return the conjunction of both conditions. An inner one that reads memory is evaluated only if the
    outer one holds."""
    if outer is None or not contains(Load, inner):
        return build.conjunction(outer, inner) or inner
    return IfThenElse(outer, inner, FALSE)


def _reduced_at_once(loop: For, reduction: _LaneReduction, namer: Namer) -> tuple[Stmt, ...]:
    """Return code that combines the lanes and then accumulates, for a loop without a serial loop around."""
    vectors = Vectors(loop, namer)
    store, op = reduction.reduction.store, reduction.reduction.op
    none = Broadcast(identity(op, build.dtype_of(store.value)), vectors.lanes)
    mask = vectors.mask(reduction.condition)
    value = vectors.vector(vectors.value(reduction.reduction.value, mask))
    lanes = value if mask is None else Select(mask, value, none)
    total = Binary(op, _load_of(store), _lanes_combined(op, lanes))
    stored = vectors.after_lets(Store(store.buffer, store.indices, total))
    shared = _shared_part(reduction.condition, loop.var)
    return simplify_body(stored if shared is None else (If(shared, stored),))


def _lanes_combined(op: ReduceOp, lanes: Expr) -> LaneReduce:
    """Return the reduction over lanes; min and max of bools are `and` and `or`."""
    is_bool = DType.parse(build.dtype_of(lanes)).kind == "bool"
    return LaneReduce(_OF_BOOLS.get(op, op) if is_bool else op, lanes)


_OF_BOOLS: dict[ReduceOp, ReduceOp] = {"min": "and", "max": "or"}


def _shared_part(condition: Expr | None, var: str) -> Expr | None:
    """Return the part of a condition that is uniform across lanes. The accumulation stays under it,
    because the element may be out of bounds otherwise."""
    match condition:
        case None:
            return None
        case Binary(op="and"):
            parts = [_shared_part(side, var) for side in (condition.lhs, condition.rhs)]
            return build.conjunction(*parts)
        case IfThenElse(if_false=Const(text="False")):
            outer = _shared_part(condition.condition, var)
            inner = _shared_part(condition.if_true, var)
            if inner is None or outer is not condition.condition:
                return outer
            return IfThenElse(outer, inner, FALSE)
    return None if var in free_vars(condition) else condition


def _accumulated(vectors: Vectors, partial: Expr, reduction: _LaneReduction) -> Expr:
    """Return the partial results after one more vector; those of masked-off lanes do not change."""
    mask = vectors.mask(reduction.condition)
    value = vectors.vector(vectors.value(reduction.reduction.value, mask))
    total = Binary(reduction.reduction.op, partial, value)
    return total if mask is None else Select(mask, total, partial)


def _load_of(store: Store) -> Load:
    return Load(store.buffer, store.indices, build.dtype_of(store.value))


def _lane_count(lanes: Lanes) -> Expr:
    count = build.index(lanes.count)
    return build.mul(count, VScale()) if lanes.scalable else count
