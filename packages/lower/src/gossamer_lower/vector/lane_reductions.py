"""Reductions over the lanes of vectorized loops.

Inside a serial loop, each lane keeps a partial result, and the lanes are combined after the loop. Without
one, the lanes are combined at once.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from gossamer_ir.analysis.accesses.linear_form import bound_of_position
from gossamer_ir.analysis.lane_projection import lane_count
from gossamer_ir.analysis.proofs.program_point import (
    ProgramPoint,
    is_invariant,
    is_speculatable_before,
)
from gossamer_ir.analysis.statements.reductions import (
    Reduction,
    identity,
    match_reduction,
    reads_buffer,
)
from gossamer_ir.arith.affine import ONE_FORM, Affine
from gossamer_ir.arith.simplify import simplify_body
from gossamer_ir.core.annotations import REMAINDER
from gossamer_ir.core.build import ONE, ZERO, floordiv, index, index_var, integer_value, mul, sub
from gossamer_ir.core.conditions import (
    ShortCircuit,
    as_short_circuit,
    conjunction,
    conjuncts,
    short_circuit_and,
)
from gossamer_ir.core.dtypes import DType
from gossamer_ir.core.expression_kinds import dtype_of
from gossamer_ir.nodes import (
    Allocate,
    Binary,
    Broadcast,
    Buffer,
    Expr,
    For,
    If,
    LaneReduce,
    Load,
    Prefetch,
    Ramp,
    ReduceOp,
    Select,
    Stmt,
    Store,
)
from gossamer_ir.traversal.buffer_uses import buffers_accessed
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.lazy_conjunction import conjunction_with_lazy_reads
from gossamer_ir.traversal.names import Namer
from gossamer_ir.traversal.substitute import substitute, substitute_body
from gossamer_lower.vector.body_vectorizer import BodyVectorizer
from gossamer_lower.vector.vector_groups import (
    grouped_loops,
    loops_of_groups,
    rest_condition,
    vector_groups,
)


class LaneReduction(msgspec.Struct, frozen=True):
    """The only store of a vectorized loop, which accumulates all lanes in one element."""

    reduction: Reduction
    condition: Expr | None


class _Peeled(msgspec.Struct, frozen=True):
    """The part of a condition that bounds a position, its bound, the other parts of the condition, and the
    number of whole vectors below the bound."""

    condition: Expr
    bound: Expr
    others: Expr | None
    whole: Expr


class _PartialResults:
    """The partial results of a reduction, one per lane, in a local buffer."""

    def __init__(self, inner: For, reduction: LaneReduction, namer: Namer) -> None:
        self.store, self.condition = reduction.reduction.store, reduction.condition
        self._reduction = reduction
        self._vectorizer = BodyVectorizer(inner, namer)
        lanes, dtype = self._vectorizer.lanes, dtype_of(self.store.value)
        name, count = namer.fresh(f"{self.store.buffer}_lanes"), lane_count(lanes)
        self._buffer = Buffer(name, (count,), dtype, None, "local")
        where = (Ramp(ZERO, ONE, lanes),)
        self._load = Load(name, where, self._vectorizer.dtype(dtype))

    def clear(self) -> tuple[Stmt, ...]:
        """Return the allocation of the partial results, and the store of their identity."""
        neutral = identity(self._reduction.reduction.op, self._buffer.dtype)
        return Allocate(self._buffer), self._store(Broadcast(neutral, self._vectorizer.lanes))

    def accumulate(self, condition: Expr | None) -> tuple[Stmt, ...]:
        """Return the statements that accumulate one more vector under a condition."""
        conditioned = replace(self._reduction, condition=condition)
        value = _accumulate_lanes(self._vectorizer, self._load, conditioned)
        return self._vectorizer.after_lets(self._store(value))

    def total(self) -> Store:
        """Return the store of the element combined with all partial results."""
        op = self._reduction.reduction.op
        total = Binary(op, _load_of(self.store), _lanes_combined(op, self._load))
        return Store(self.store.buffer, self.store.indices, total)

    def _store(self, value: Expr) -> Store:
        return Store(self._buffer.name, self._load.indices, value)


class LaneReducer:
    """Vectorizes loops around reductions over lanes, at a point of a function."""

    def __init__(self, point: ProgramPoint, namer: Namer) -> None:
        self._point = point
        self._namer = namer

    def with_partial_results(self, outer: For) -> tuple[Stmt, ...] | None:
        """Return a loop around a lane reduction with one partial result per lane; None for other loops.

        Prefetches at the end of an iteration are those of whole vectors: the remainder is short.
        """
        outer, prefetches = _split_prefetches(outer)
        loops = loops_of_groups(outer)
        if loops is not None:
            return self._with_groups(outer, loops, prefetches)
        inner = outer.body[0] if len(outer.body) == 1 else None
        # Anything else in the loop could read the element between two of its iterations.
        if not isinstance(inner, For) or inner.kind != "vectorized":
            return None
        reduction = lane_reduction(inner)
        if reduction is None or not self._may_be_stored_after(
            outer, inner, reduction, prefetches=prefetches
        ):
            return None
        peeled = self._peel_bound(outer, inner, reduction)
        results = _PartialResults(inner, reduction, self._namer)
        condition = reduction.condition if peeled is None else peeled.others
        accumulate = _under_shared_part(results.accumulate(condition), condition, inner.var)
        extent = outer.extent if peeled is None else peeled.whole
        main = replace(outer, extent=extent, body=(*accumulate, *prefetches))
        code = (*results.clear(), main, *self._combine_partials(outer, inner, peeled, results))
        return simplify_body(code)

    def _with_groups(
        self, outer: For, loops: tuple[For, For], prefetches: tuple[Stmt, ...]
    ) -> tuple[Stmt, ...] | None:
        """Return whole groups of vectors without masks, and those left over with masks."""
        vectors, inner = loops
        reduction = lane_reduction(inner) if _has_masked_remainder(inner) else None
        if reduction is None or vectors.var in free_vars(*reduction.reduction.store.indices):
            return None
        if not self._may_be_stored_after(outer, inner, reduction, prefetches=prefetches):
            return None
        groups = vector_groups(outer, loops, reduction.condition, point=self._point)
        if groups is None:
            return None
        results = _PartialResults(inner, reduction, self._namer)
        whole, masked = (
            _under_shared_part(results.accumulate(condition), condition, inner.var)
            for condition in (groups.others, rest_condition(groups))
        )
        is_nonnegative = self._point.is_nonnegative(groups.bound)
        code = grouped_loops(
            groups,
            whole=whole,
            masked=masked,
            prefetches=prefetches,
            namer=self._namer,
            is_nonnegative=is_nonnegative,
        )
        return simplify_body((*results.clear(), *code, results.total()))

    def _combine_partials(
        self, outer: For, inner: For, peeled: _Peeled | None, results: _PartialResults
    ) -> tuple[Stmt, ...]:
        """Return the statements that combine the partial results, and add the elements after the last whole
        vector: as one more vector before, or one by one after."""
        total = results.total()
        if peeled is None:
            return (total,)
        if _has_masked_remainder(inner):
            masked = results.accumulate(results.condition)
            return (_masked_remainder(outer, inner, peeled, body=masked), total)
        return (total, self._serial_remainder(outer, inner, peeled, store=results.store))

    def _may_be_stored_after(
        self, outer: For, inner: For, reduction: LaneReduction, *, prefetches: tuple[Stmt, ...]
    ) -> bool:
        """Return whether all iterations accumulate into one element, over one range of lanes. The element
        must be in bounds even if the loop has no iteration, or all lanes are masked off: the combined result
        is stored in any case."""
        store = reduction.reduction.store
        return (
            not any(outer.var in free_vars(at) for at in store.indices)
            # The prefetched address could depend on partial sums.
            and store.buffer not in buffers_accessed(*prefetches)
            and is_invariant(inner.start, outer.body, self._point.function)
            and all(
                self._point.is_in_range(at, extent)
                for at, extent in zip(store.indices, self._point.shapes[store.buffer], strict=True)
            )
        )

    def _serial_remainder(self, outer: For, inner: For, peeled: _Peeled, *, store: Store) -> For:
        """Return the loop over the elements after the last whole vector, one at a time."""
        remainder = sub(peeled.bound, mul(peeled.whole, inner.extent))
        var = self._namer.fresh(f"{outer.var}_rest")
        values = {outer.var: peeled.whole, inner.var: index_var(var)}
        return For(var, ZERO, remainder, substitute_body((store,), values))

    def _peel_bound(self, outer: For, inner: For, reduction: LaneReduction) -> _Peeled | None:
        """Return the part of the condition that is "position < bound" with a bound known before the loop.

        Whole vectors then need no mask for it; only the remainder does. None if there is no such part, or
        lanes are scalable.
        """
        lanes = integer_value(inner.extent)
        parts = list(conjuncts(reduction.condition))
        for part in parts:
            bound = _bound_of_lanes(outer, inner, part)
            # If the loops end before the bound, the remainder would run over iterations that do not exist.
            if bound is None or lanes is None or not self._covers(outer, lanes, bound):
                continue
            # The bound is evaluated before the loop, which may have no iteration that would evaluate it.
            if not is_speculatable_before(bound, outer, self._point.function):
                continue
            if not self._is_as_computed(part, bound, loops=(outer, inner)):
                continue
            others = conjunction(*[other for other in parts if other is not part])
            # A scalar remainder under further conditions would be a loop with branches, slower than masks.
            is_peeled = others is None or _has_masked_remainder(inner)
            whole = self._whole_vectors(outer, inner, bound)
            # The number of copies of an unrolled loop must be constant, so they cover all vectors that there
            # may be.
            is_peeled &= outer.kind != "unrolled" or integer_value(whole) is not None
            return _Peeled(part, bound, others, whole) if is_peeled else None
        return None

    def _is_as_computed(self, condition: Expr, bound: Expr, *, loops: tuple[For, For]) -> bool:
        """Return whether a condition is equivalent to the bound solved from it: neither may overflow."""
        outer, inner = loops
        with self._point.inside(outer), self._point.inside(inner):
            return self._point.is_exact(condition, bound)

    def _whole_vectors(self, outer: For, inner: For, bound: Expr) -> Expr:
        """Return the number of vectors with all lanes below the bound, which may be negative. If all but
        the last are whole, the number is extent - 1, often a constant."""
        last = sub(outer.extent, ONE)
        reached = mul(last, inner.extent)
        # All vectors but the last are whole: a constant trip count, which LLVM can unroll.
        if integer_value(last) and self._point.is_at_most(reached, bound):
            return last
        whole = floordiv(bound, inner.extent)
        # A negative bound would make the number of vectors negative,
        # and the remainder would start before 0.
        return whole if self._point.is_nonnegative(bound) else Binary("max", whole, ZERO)

    def _covers(self, outer: For, lanes: int, bound: Expr) -> bool:
        reached = mul(outer.extent, index(lanes))
        return self._point.is_at_most(bound, reached)


def _split_prefetches(loop: For) -> tuple[For, tuple[Stmt, ...]]:
    """Return a loop without the prefetches at the end of its body, and these."""
    count = len(loop.body)
    while count and _is_prefetch(loop.body[count - 1]):
        count -= 1
    return replace(loop, body=loop.body[:count]), loop.body[count:]


# Other statements: they do more than prefetch.
def _is_prefetch(stmt: Stmt) -> bool:
    match stmt:
        case Prefetch():
            return True
        case For(kind="serial" | "unrolled", body=body) | If(then_body=body, else_body=()):
            return all(map(_is_prefetch, body))
    return False


def _masked_remainder(outer: For, inner: For, peeled: _Peeled, *, body: tuple[Stmt, ...]) -> If:
    """Return the accumulation of the last vector, masked, if any of its lanes is below the bound."""
    values = {outer.var: peeled.whole}
    reached = substitute(peeled.condition, {**values, inner.var: ZERO})
    return If(reached, substitute_body(body, values))


def _has_masked_remainder(loop: For) -> bool:
    """Return whether the remainder of a reduction is to be one masked vector (`vectorize(remainder=)`)."""
    return dict(loop.annotations).get(REMAINDER) == "masked"


def _bound_of_lanes(outer: For, inner: For, condition: Expr) -> Expr | None:
    """Return the bound if a condition on loops that start at 0 is equivalent to
    `outer * lanes + inner < bound`; else None."""
    lanes = integer_value(inner.extent)
    if lanes is None or (outer.start, inner.start) != (ZERO, ZERO):
        return None
    return bound_of_position(condition, {outer.var: Affine({}, lanes), inner.var: ONE_FORM})


# Other statements: nothing is concluded from them.
def lane_reduction(loop: For) -> LaneReduction | None:
    """Return the reduction that a vectorized loop consists of; None for any other loop."""
    condition: Expr | None = None
    body = loop.body
    while len(body) == 1 and isinstance(body[0], If) and not body[0].else_body:
        condition = conjunction_with_lazy_reads(condition, body[0].condition)
        body = body[0].then_body
    if len(body) != 1 or not isinstance(body[0], Store):
        return None
    # Each lane has an element of its own: not a reduction over lanes.
    if any(loop.var in free_vars(at) for at in body[0].indices):
        return None
    # The condition could see partial sums.
    if condition is not None and reads_buffer(condition, body[0].buffer):
        return None
    reduction = match_reduction(body[0])
    return None if reduction is None else LaneReduction(reduction, condition)


def reduce_at_once(loop: For, reduction: LaneReduction, namer: Namer) -> tuple[Stmt, ...]:
    """Return code that combines the lanes and then accumulates, for a loop without a serial loop around."""
    vectorizer = BodyVectorizer(loop, namer)
    store, op = reduction.reduction.store, reduction.reduction.op
    # Masked-off lanes must not change the result of the combination.
    none = Broadcast(identity(op, dtype_of(store.value)), vectorizer.lanes)
    mask = vectorizer.mask(reduction.condition)
    value = vectorizer.vector(vectorizer.value(reduction.reduction.value, mask))
    lanes = value if mask is None else Select(mask, value, none)
    total = Binary(op, _load_of(store), _lanes_combined(op, lanes))
    stored = vectorizer.after_lets(Store(store.buffer, store.indices, total))
    shared = _shared_part(reduction.condition, loop.var)
    return simplify_body(stored if shared is None else (If(shared, stored),))


def _lanes_combined(op: ReduceOp, lanes: Expr) -> LaneReduce:
    """Return the reduction over lanes; min and max of bools are `and` and `or`."""
    is_bool = DType.parse(dtype_of(lanes)).kind == "bool"
    return LaneReduce(_OF_BOOLS.get(op, op) if is_bool else op, lanes)


# Other operations: keep their names; only `min` and `max` of bools have others.
_OF_BOOLS: dict[ReduceOp, ReduceOp] = {"min": "and", "max": "or"}


def _shared_part(condition: Expr | None, var_name: str) -> Expr | None:
    """Return the part of a condition that is uniform across lanes. The accumulation stays under it,
    because the element may be out of bounds otherwise."""
    if condition is None:
        return None
    match as_short_circuit(condition) or condition:
        case Binary(op="and", lhs=lhs, rhs=rhs):
            return conjunction(_shared_part(lhs, var_name), _shared_part(rhs, var_name))
        case ShortCircuit("and", first, second):
            outer, inner = _shared_part(first, var_name), _shared_part(second, var_name)
            if inner is None or outer is not first:
                return outer
            return short_circuit_and(outer, inner)
    return None if var_name in free_vars(condition) else condition


def _under_shared_part(
    accumulate: tuple[Stmt, ...], condition: Expr | None, var_name: str
) -> tuple[Stmt, ...]:
    """Return an accumulation under the uniform part of its condition: the element may be out of bounds where
    that fails."""
    shared = _shared_part(condition, var_name)
    return accumulate if shared is None else (If(shared, accumulate),)


def _accumulate_lanes(vectorizer: BodyVectorizer, partial: Expr, reduction: LaneReduction) -> Expr:
    """Return the partial results after one more vector; those of masked-off lanes do not change."""
    mask = vectorizer.mask(reduction.condition)
    value = vectorizer.vector(vectorizer.value(reduction.reduction.value, mask))
    total = Binary(reduction.reduction.op, partial, value)
    return total if mask is None else Select(mask, total, partial)


def _load_of(store: Store) -> Load:
    return Load(store.buffer, store.indices, dtype_of(store.value))
