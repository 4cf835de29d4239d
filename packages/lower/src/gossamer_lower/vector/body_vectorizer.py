"""Vector forms of the statements and expressions in one vectorized loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from msgspec.structs import replace

from gossamer_ir.arith.simplify import simplify
from gossamer_ir.core.build import ONE, add, integer_value, mul, sub, zero_of
from gossamer_ir.core.conditions import conjunction, conjuncts, is_true
from gossamer_ir.core.dtypes import DType
from gossamer_ir.core.expression_kinds import EXPR_KINDS, dtype_of, has_lanes
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import (
    Binary,
    Broadcast,
    Const,
    Expr,
    For,
    Guard,
    If,
    IfThenElse,
    LaneReduce,
    Lanes,
    Let,
    Load,
    Prefetch,
    Ramp,
    Search,
    Select,
    Stmt,
    Store,
    Unary,
    Var,
    VScale,
)
from gossamer_ir.traversal.names import Namer
from gossamer_ir.traversal.rewrite import map_children, with_children
from gossamer_ir.traversal.walk import children, collect, contains

IsWhole: TypeAlias = Callable[[str, tuple[Expr, ...]], bool]


class BodyVectorizer:
    """Rewrites the body of one vectorized loop as vector code.

    `is_whole` returns whether an access is in bounds in all lanes, also in masked-off ones. Such an access
    needs no mask; a store then blends with the old values. Conditions that read memory are bound to
    lets, since masks of nested conditions would be duplicated: their loads are masked, too.
    """

    def __init__(self, loop: For, namer: Namer, *, is_whole: IsWhole | None = None) -> None:
        self._namer = namer
        self._lets: list[Let] = []
        self._is_whole = is_whole or _never_whole
        self._masked: dict[tuple[str, tuple[Expr, ...]], Load] = {}
        self.lanes = lanes_of_loop(loop)
        self._values: dict[str, Expr] = {loop.var: Ramp(loop.start, ONE, self.lanes)}

    def dtype(self, scalar: str) -> str:
        return DType(scalar, self.lanes.count, self.lanes.scalable).text

    # --- statements

    def body(self, body: tuple[Stmt, ...], mask: Expr | None) -> tuple[Stmt, ...]:
        result: list[Stmt] = []
        for stmt in body:
            result += self._stmt(stmt, mask)
        return tuple(result)

    def _stmt(self, stmt: Stmt, mask: Expr | None) -> tuple[Stmt, ...]:
        match stmt:
            case Store():
                return self.after_lets(self._store(stmt, mask))
            case If():
                return self._if(stmt, mask)
            case Let():
                return self.after_lets(self._let(stmt, mask))
            case For() if stmt.kind in ("serial", "unrolled"):
                return self._loop(stmt, mask)
            case Guard():
                return self.after_lets(self._guard(stmt, mask))
            # A prefetch is only a hint, and it has no vector form.
            case Prefetch():
                return ()
        raise _unsupported_error(type(stmt).__name__, "has no vector form yet")

    def after_lets(self, *stmts: Stmt) -> tuple[Stmt, ...]:
        """Return the statements after the lets that were collected since the last call."""
        lets, self._lets = self._lets, []
        return (*lets, *stmts)

    def _guard(self, stmt: Guard, mask: Expr | None) -> Guard:
        condition = self.vector(self.value(stmt.condition, mask))
        # Masked-off lanes do not access anything, so they must not stop the kernel.
        if mask is not None:
            condition = Binary("or", condition, Unary("not", mask))
        return Guard(LaneReduce("and", condition), stmt.buffer)

    def _store(self, stmt: Store, mask: Expr | None) -> Store:
        indices = self._indices(stmt.indices, mask)
        # Which lane would be last is not defined.
        if not any(has_lanes(index) for index in indices):
            raise _unsupported_error(
                "Store", f"writes the same element of '{stmt.buffer}' from every lane"
            )
        value = self.vector(self.value(stmt.value, mask))
        stated = None if stmt.predicate is None else self.vector(self.value(stmt.predicate, mask))
        predicate = conjunction(mask, stated)
        # A blend keeps the accumulator in a register; a masked store would force it to memory.
        if predicate is not None and self._is_whole(stmt.buffer, indices):
            old = Load(stmt.buffer, indices, dtype_of(value))
            return replace(
                stmt, indices=indices, value=Select(predicate, value, old), predicate=None
            )
        return replace(stmt, indices=indices, value=value, predicate=predicate)

    def _if(self, stmt: If, mask: Expr | None) -> tuple[Stmt, ...]:
        condition = self.value(stmt.condition, mask)
        if not has_lanes(condition):
            lets = self.after_lets()
            then_body, else_body = self.body(stmt.then_body, mask), self.body(stmt.else_body, mask)
            return (*lets, If(condition, then_body, else_body))
        masked = _masked_loads(condition, mask)
        condition = self._once(condition)
        lets = self.after_lets()
        inside = conjunction(mask, condition)
        outside = conjunction(mask, Unary("not", condition))
        before, self._masked = self._masked, {**self._masked, **masked}
        then_body = self.body(stmt.then_body, inside)
        self._masked = before
        return (*lets, *then_body, *self.body(stmt.else_body, outside))

    def _let(self, stmt: Let, mask: Expr | None) -> Let:
        value = self.value(stmt.value, mask)
        var = Var(stmt.var.name, dtype_of(value))
        self._values[var.name] = var
        return Let(var, value)

    def _loop(self, stmt: For, mask: Expr | None) -> tuple[Stmt, ...]:
        start, extent = self.value(stmt.start, mask), self.value(stmt.extent, mask)
        # One loop runs for all lanes; a loop per lane would need a mask in each iteration.
        if has_lanes(start) or has_lanes(extent):
            raise _unsupported_error(
                "For", f"runs '{stmt.var}' a different number of times in each lane"
            )
        lets, body = self.after_lets(), self.body(stmt.body, mask)
        return (*lets, replace(stmt, start=start, extent=extent, body=body))

    # --- expressions

    def mask(self, condition: Expr | None) -> Expr | None:
        """Return the mask of a condition; None if it holds in all lanes."""
        if condition is None:
            return None
        mask = simplify(self.vector(self.value(condition, None)))
        return None if is_true(mask) else mask

    def vector(self, value: Expr) -> Expr:
        """Return the value as a vector: a scalar is broadcast."""
        return value if has_lanes(value) else Broadcast(value, self.lanes)

    def value(self, expr: Expr, mask: Expr | None) -> Expr:
        """Return the vector of an expression; a scalar if it is uniform across lanes."""
        match expr:
            case Var():
                return self._values.get(expr.name, expr)
            case Const() | VScale():
                return expr
            case Load():
                return self._load(expr, mask)
            case Binary():
                lhs, rhs = self.value(expr.lhs, mask), self.value(expr.rhs, mask)
                return self._binary(expr, lhs, rhs)
            case Select() | IfThenElse():
                return self._select(expr, mask)
            case Search():
                return self._search(expr, mask)
        kind = EXPR_KINDS[type(expr)]
        if kind.lanes == "elementwise" and not kind.lazy and not kind.reads:  # these need the mask
            return self._elementwise(expr, mask)
        operands: list[Any] = children(expr)
        is_vector = any(map(has_lanes, (expr, *operands)))
        reason = "is inside another vectorized loop" if is_vector else "has no vector form yet"
        raise _unsupported_error(type(expr).__name__, reason)

    def _elementwise(self, expr: Expr, mask: Expr | None) -> Expr:
        """Return the operation on vectors, if any of its operands is a vector."""
        below: list[Any] = children(expr)
        operands = [self.value(operand, mask) for operand in below]
        if not any(map(has_lanes, operands)):
            return with_children(expr, operands)
        vector = with_children(expr, map(self.vector, operands))
        declared: str | None = getattr(expr, "dtype", None)
        return vector if declared is None else replace(vector, dtype=self.dtype(declared))

    def _binary(self, expr: Binary, lhs: Expr, rhs: Expr) -> Expr:
        """Return a binary operation of vectors; a sum or product of a ramp and a scalar stays a ramp."""
        match expr.op, lhs, rhs:
            # Ramps are kept as long as possible: they are what becomes a vector load instead of a gather.
            case "add", Ramp(), _ if not has_lanes(rhs):
                return Ramp(add(lhs.base, rhs), lhs.stride, lhs.lanes)
            case "add", _, Ramp() if not has_lanes(lhs):
                return Ramp(add(lhs, rhs.base), rhs.stride, rhs.lanes)
            case "sub", Ramp(), _ if not has_lanes(rhs):
                return Ramp(sub(lhs.base, rhs), lhs.stride, lhs.lanes)
            case "mul", Ramp(), _ if not has_lanes(rhs):
                return Ramp(mul(lhs.base, rhs), mul(lhs.stride, rhs), lhs.lanes)
            case "mul", _, Ramp() if not has_lanes(lhs):
                return Ramp(mul(lhs, rhs.base), mul(lhs, rhs.stride), rhs.lanes)
        return Binary(expr.op, *self._pair(lhs, rhs))

    def _select(self, expr: Select | IfThenElse, mask: Expr | None) -> Expr:
        condition = self.value(expr.condition, mask)
        if not has_lanes(condition):
            sides = self._pair(self.value(expr.if_true, mask), self.value(expr.if_false, mask))
            return type(expr)(condition, *sides)
        # The sides of a `Select` are always evaluated, so they are not masked by its condition.
        is_lazy = isinstance(expr, IfThenElse)
        condition = self._once(condition) if is_lazy else condition
        inside = conjunction(mask, condition) if is_lazy else mask
        outside = conjunction(mask, Unary("not", condition)) if is_lazy else mask
        if_true = self.vector(self.value(expr.if_true, inside))
        return Select(condition, if_true, self.vector(self.value(expr.if_false, outside)))

    def _once(self, condition: Expr) -> Expr:
        """Return a condition on lanes, as the variable of a let if it reads memory."""
        if not contains(Load, condition):
            return condition
        var = Var(self._namer.fresh("holds"), dtype_of(condition))
        self._lets.append(Let(var, condition))
        return var

    def _search(self, expr: Search, mask: Expr | None) -> Search:
        """Return a search, which must be uniform: it is made once for all lanes."""
        search = map_children(expr, lambda operand: self.value(operand, mask))
        if any(map(has_lanes, (*search.prefix, search.begin, search.end, search.value))):
            raise _unsupported_error("a search", "is for a different value in each lane")
        return search

    def _load(self, expr: Load, mask: Expr | None) -> Load:
        """Return a load; unless it is uniform, only of the lanes that the mask enables."""
        indices = self._indices(expr.indices, mask)
        stated = None if expr.predicate is None else self.value(expr.predicate, mask)
        varies = any(has_lanes(index) for index in indices) or (
            stated is not None and has_lanes(stated)
        )
        # A uniform load is not masked. `insert_bounds_checks` has refused those that a mask would protect.
        if not varies:
            return Load(expr.buffer, indices, expr.dtype, stated, expr.passthrough)
        if stated is None and self._is_whole(expr.buffer, indices):
            return Load(expr.buffer, indices, self.dtype(expr.dtype))
        predicate = conjunction(mask, None if stated is None else self.vector(stated))
        if predicate is None:
            return Load(expr.buffer, indices, self.dtype(expr.dtype))
        masked = self._masked.get((expr.buffer, indices)) if stated is None else None
        if masked is not None:
            return masked
        # Masked-off lanes need a value; 0 is cheap, and the select or store above ignores it.
        other = self.value(expr.passthrough or zero_of(expr.dtype), mask)
        return Load(expr.buffer, indices, self.dtype(expr.dtype), predicate, self.vector(other))

    def _indices(self, indices: tuple[Expr, ...], mask: Expr | None) -> tuple[Expr, ...]:
        return tuple(self.value(index, mask) for index in indices)

    def _pair(self, lhs: Expr, rhs: Expr) -> tuple[Expr, Expr]:
        if has_lanes(lhs) == has_lanes(rhs):
            return lhs, rhs
        return self.vector(lhs), self.vector(rhs)


def lanes_of_loop(loop: For) -> Lanes:
    """Return the lanes of a vectorized loop, whose extent is a constant or a constant times vscale."""
    count = integer_value(loop.extent)
    if count is not None and count > 1:
        return Lanes(count)
    match loop.extent:
        case VScale():
            return Lanes(1, scalable=True)
        case Binary(op="mul", lhs=VScale(), rhs=Const() as factor):
            return Lanes(int(factor.text), scalable=True)
        case Binary(op="mul", lhs=Const() as factor, rhs=VScale()):
            return Lanes(int(factor.text), scalable=True)
    raise _unsupported_error(
        f"'{loop.var}'", "has an extent that is neither constant nor a multiple of vscale"
    )


def _masked_loads(condition: Expr, mask: Expr | None) -> dict[tuple[str, tuple[Expr, ...]], Load]:
    """Return the loads of a condition by their elements, if all lanes in which the condition holds have
    loaded theirs.

    The same elements can be loaded with the same mask again, although fewer lanes need them. The mask is
    often invariant where the condition is not.
    """
    holding = {*conjuncts(condition), *conjuncts(mask)}
    return {
        (load.buffer, load.indices): load
        for load in collect(Load, condition)
        if load.predicate is not None and holding.issuperset(conjuncts(load.predicate))
    }


def _never_whole(_buffer: str, _indices: tuple[Expr, ...]) -> bool:
    return False


def _unsupported_error(what: str, why: str) -> UnsupportedError:
    return UnsupportedError(
        "lower.vectorize_loops.no_vector_form", f"In a vectorized loop, {what} {why}."
    )
