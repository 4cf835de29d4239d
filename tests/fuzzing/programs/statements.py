"""Random statements: plain stores to one element per point, and reductions by a reducer."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gossamer_ir.analysis.statements.reductions import identity
from gossamer_ir.core.constants import constant
from gossamer_ir.nodes import (
    Binary,
    BinaryOp,
    Cast,
    Combine,
    Expr,
    If,
    Let,
    Load,
    Prefetch,
    Select,
    SparseBuffer,
    Stmt,
    Store,
    Var,
)
from tests.fuzzing.oracle.arithmetic import FLOATS, INTEGERS, SIGNIFICANT
from tests.fuzzing.programs.expressions import MAX_MAGNITUDE, Term, largest, term
from tests.fuzzing.programs.operands import Reads
from tests.fuzzing.programs.reducers import REDUCERS, largest_and_where

MAX_AXIS_LENGTH = 99
"""The maximum length of a dense axis."""
FLOAT_OPS: tuple[BinaryOp, ...] = ("add", "add", "add", "sub", "mul", "min", "max")


@dataclass
class Stores(Reads):
    """Draws the init and the body of an iteration."""

    def stmts(self, members: list[tuple[str, str | None]]) -> tuple[list[Stmt], list[Stmt]]:
        """An init and a body."""
        self.lets = []
        init: list[Stmt] = []
        body: list[Stmt] = []
        if self.chance(0.04):
            body += self._prefetch()
        if self.chance(0.2):
            dtype = self.rng.choice(self.dtypes)
            value = self.terms.value(dtype, 2)
            name = self.fresh("t")
            body.append(Let(Var(name, dtype), value.expr))
            self.lets = [Term(Var(name, dtype), dtype, value.bound, value.fraction, value.error)]
        kinds = [self.assign, self.accumulate, self.accumulate, self.combine]
        steps = self.rng.choice((1, 1, 1, 2))
        for _ in range(steps):
            drawn = self.rng.choice(kinds)(is_first=not init)
            first, rest = drawn or self.accumulate(is_first=not init) or ([], [])
            init += first
            body += rest
        if self.chance(0.2) and not any(isinstance(stmt, Let) for stmt in body):
            body = self._conditional(body)
        self.lets = []
        return init, body

    def _prefetch(self) -> list[Stmt]:
        usable = [
            buffer for buffer in self.buffers if buffer.handle and not buffer.name.startswith("AT")
        ]
        if not usable:
            return []
        buffer = self.rng.choice(usable)
        indices = self.indices(buffer.axes)
        return [Prefetch(buffer.name, indices)] if indices is not None else []

    def _conditional(self, body: list[Stmt]) -> list[Stmt]:
        stores = [store.buffer for stmt in body for store in _stores(stmt)]
        allocated = {buffer.name for buffer in self.buffers if buffer.handle is None}
        if allocated & set(stores):
            return body
        condition = self.terms.condition(1).expr
        if self.chance(0.6) and len(body) > 1:
            return [If(condition, tuple(body[:1]), tuple(body[1:]))]
        return [If(condition, tuple(body))]

    def _stored(
        self, buffer_name: str, indices: tuple[Expr, ...], content: Term, terms: list[Term]
    ) -> None:
        """A buffer that is stored to is read only at the same element, until the outermost iteration ends."""
        self.blocked.add(buffer_name)
        before = self.contents[buffer_name]
        self.contents[buffer_name] = Term(
            content.expr,
            content.dtype,
            max(before.bound, content.bound),
            max(before.fraction, content.fraction),
            max(before.error, content.error),
        )
        terms.append(
            replace(self.contents[buffer_name], expr=Load(buffer_name, indices, content.dtype))
        )

    def assign(self, *, is_first: bool) -> tuple[list[Stmt], list[Stmt]] | None:
        """One value for each point."""
        place = self._all_points()
        if place is None:
            return None
        axes, indices = place
        dtype = self.rng.choice(self.dtypes)
        value = self.terms.value(dtype, self.rng.choice((1, 2, 3)))
        buffer = self._output(axes, dtype)
        self._stored(buffer.name, indices, value, self.own_elements)
        self._tolerate(buffer)
        return [], [Store(buffer.name, indices, value.expr)]

    def _all_points(self) -> tuple[tuple[str, ...], tuple[Expr, ...]] | None:
        """Axes and indices of a separate element for each point of all enclosing iterations."""
        if any(not bound.is_own for bound in self.scope):
            return None
        axes = [bound.axis for bound in self.scope]
        indices: list[Expr] = [Var(bound.var, "int64") for bound in self.scope]
        is_dense = all(self.forest.is_unique(axis) for axis in axes) and self.chance(0.3)
        if is_dense or not self._is_storable(axes):
            roots = [self._root_of(self.forest.length(axis)) for axis in axes]
            if not all(self.forest.is_unique(axis) for axis in axes) or len({*roots, ""}) <= len(
                roots
            ):
                return None
            return tuple(roots), tuple(indices)
        order = self._merged(axes, [])
        permuted = [indices[axes.index(axis)] for axis in order]
        return tuple(order), tuple(permuted)

    def _root_of(self, length: int) -> str:
        """A dense root axis of at least this length."""
        fitting = [
            axis.name
            for axis in self.forest.axes
            if axis.parent is None and self.forest.length(axis.name) >= length
        ]
        if fitting and self.chance(0.7):
            return self.rng.choice(fitting)
        if len(self.forest.axes) >= 12 or length > MAX_AXIS_LENGTH:
            return ""
        return self.forest.add_root(length)

    def target(self) -> tuple[tuple[str, ...], tuple[Expr, ...]] | None:
        """Axes and indices of an element that several points may share."""
        forest = self.forest
        if self.is_careless and self.chance(0.4):
            axes = self.axes_to_read()
            indices = self.indices(axes)
            return None if indices is None else (axes, indices)
        superset = self.into_superset()
        if superset is not None and self.chance(0.7):
            return superset
        own_axes = [bound.axis for bound in self.scope if bound.is_own]
        chosen: list[str] = []
        for _ in range(self.rng.choice((1, 1, 2))):
            first = self.rng.choice(own_axes) if own_axes and self.chance(0.8) else None
            first = first or self._root_of(self.rng.choice((2, 3, 5)))
            if not first:
                continue
            added = [axis for axis in forest.ancestors(first) if axis not in chosen]
            if self._is_storable([*chosen, *added]):
                chosen += added
        indices = self.indices(chosen, exact=True)
        return None if indices is None or not chosen else (tuple(chosen), indices)

    def accumulate(self, *, is_first: bool) -> tuple[list[Stmt], list[Stmt]] | None:
        """Several values for each element, combined by a built-in reducer."""
        place = self.target()
        if place is None:
            return None
        axes, indices = place
        dtype = self.rng.choice(self.dtypes)
        op = self._reduce_op(dtype)
        value = self.terms.value(dtype, self.rng.choice((1, 2, 2, 3)))
        if op == "mul" and dtype in FLOATS:
            sign = self.terms.condition(1).expr
            value = Term(Select(sign, constant(1, dtype), constant(-1, dtype)), dtype, 1)
        buffer = self._output(axes, dtype)
        has_init = (is_first and self.chance(0.7)) or buffer.handle is None
        if buffer.handle is None and not is_first:
            return None
        init, start = self._init(buffer, indices, op) if has_init else ([], 0.0)
        many = self.max_points()
        content = self.accumulated(value, op, many, start=max(start, 0 if has_init else 7))
        stmt = Store(buffer.name, indices, self._combined(buffer, indices, op, value))
        self._stored(buffer.name, indices, content, self.pending)
        self._tolerate(buffer)
        return init, [stmt]

    def _output(self, axes: tuple[str, ...], dtype: str) -> SparseBuffer:
        """A buffer that no enclosing iteration reads or stores to: a new or an existing one."""
        usable = [
            buffer for buffer in self.buffers
            if buffer.axes == axes and buffer.dtype == dtype
            and buffer.name not in self.read | self.blocked and not buffer.name.startswith("AT")
        ]  # fmt: skip
        if usable and self.chance(0.4):
            return self.rng.choice(usable)
        return self.buffer(axes, dtype, is_read=False)

    def _reduce_op(self, dtype: str) -> BinaryOp:
        if dtype == "bool":
            return self.rng.choice(("and", "or"))
        return self.rng.choice(FLOAT_OPS)

    def _init(
        self, buffer: SparseBuffer, indices: tuple[Expr, ...], op: BinaryOp
    ) -> tuple[list[Stmt], float]:
        """The identity of the reducer, or another number."""
        dtype = buffer.dtype
        start: Expr = identity("add" if op == "sub" else op, dtype)
        most = 4.0
        if self.chance(0.3):
            start = self._constant(dtype).expr
        elif dtype in INTEGERS:
            most = largest(dtype)
        elif dtype in FLOATS and self.chance(0.15):
            names = [
                index.name for index in indices if isinstance(index, Var) and self._is_small(index)
            ]
            if names:
                most = 20.0
                start = Cast(dtype, Var(self.rng.choice(names), "int64"))
        return [Store(buffer.name, indices, start)], most

    def _is_small(self, var: Var) -> bool:
        axis = next(bound.axis for bound in self.scope if bound.var == var.name)
        return self.forest.length(axis) <= 20

    def _combined(
        self, buffer: SparseBuffer, indices: tuple[Expr, ...], op: BinaryOp, value: Term
    ) -> Expr:
        element = Load(buffer.name, indices, buffer.dtype)
        if op in ("add", "sub") and self.chance(0.2):
            other = self._constant(buffer.dtype).expr
            return Binary("sub", Binary(op, element, value.expr), other)
        if op != "sub" and self.chance(0.25):
            return Binary(op, value.expr, element)
        return Binary(op, element, value.expr)

    def accumulated(self, value: Term, op: BinaryOp, many: float, *, start: float = 4) -> Term:
        """The bounds of so many values combined."""
        dtype = value.dtype
        if dtype not in FLOATS:
            bound = 1 if dtype == "bool" else largest(dtype)
            return Term(value.expr, dtype, bound)
        if op not in ("add", "sub"):
            bound = max(value.bound, start)
            return Term(value.expr, dtype, bound, value.fraction, value.error)
        bound = start + many * (value.bound + 3)
        error = many * value.error
        scaled = term(value.expr, dtype, bound, fraction=value.fraction, error=error)
        if scaled.error:
            extra = many * 2.0 ** (1 - SIGNIFICANT[dtype]) * bound
            return Term(value.expr, dtype, bound, 0, scaled.error + extra)
        return scaled

    def _tolerate(self, buffer: SparseBuffer) -> None:
        if buffer.handle is not None:
            self.tolerances[buffer.handle] = self.contents[buffer.name].error

    def combine(self, *, is_first: bool) -> tuple[list[Stmt], list[Stmt]] | None:
        """A declared reducer of tuples."""
        place = self.target()
        if place is None:
            return None
        axes, indices = place
        dtype = self.rng.choice(("float32", "float64", "int32", "int64", "uint16"))
        makers = [maker for maker in REDUCERS[dtype in FLOATS]
                  if not (self.is_special and maker is largest_and_where)]  # fmt: skip
        reducer = self.rng.choice(makers)(self.fresh("reducer"), dtype)
        values = [self._summand(var.dtype) for var in reducer.lhs]
        buffers = [self.buffer(axes, var.dtype, is_read=True) for var in reducer.lhs]
        self.reducers.append(reducer)
        stores = tuple(
            Store(buffer.name, indices, value.expr)
            for buffer, value in zip(buffers, values, strict=True)
        )
        init = []
        if is_first and self.chance(0.75):
            pairs = zip(buffers, reducer.identity, strict=True)
            init = [Store(buffer.name, indices, start) for buffer, start in pairs]
        for buffer in buffers:
            self.blocked.add(buffer.name)
            bound = MAX_MAGNITUDE if buffer.dtype in FLOATS else largest(buffer.dtype)
            self.contents[buffer.name] = Term(constant(0, buffer.dtype), buffer.dtype, bound)
            self.tolerances[str(buffer.handle)] = 0.0
        return init, [Combine(reducer.name, stores)]

    def _summand(self, dtype: str) -> Term:
        """A value whose sums are exact."""
        exact = self.terms.exact(dtype, 2)
        if dtype in FLOATS:
            most = exact.bound * 2.0**exact.fraction * (self.max_points() + 1)
            if most > 2.0 ** SIGNIFICANT[dtype]:
                return self._constant(dtype)
        return exact


def _stores(stmt: Stmt) -> list[Store]:
    match stmt:
        case Store():
            return [stmt]
        case Combine():
            return list(stmt.stores)
        case _:
            return []
