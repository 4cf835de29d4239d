"""Bounds of the absolute values of expressions at run time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from functools import cache, lru_cache
from math import prod
from typing import Self

from gossamer_ir.analysis.bounds.array_extents import MAX_ARRAY, array_extents
from gossamer_ir.analysis.invariants import invariant_facts
from gossamer_ir.arith.affine import factors_of
from gossamer_ir.core.build import ZERO, integer_value, is_nonnegative_integer
from gossamer_ir.core.dtypes import DType
from gossamer_ir.core.expression_kinds import dtype_of
from gossamer_ir.core.limits import MAX_SIZE
from gossamer_ir.core.math_functions import FUNCTIONS
from gossamer_ir.facts.fact_index import fact_index
from gossamer_ir.facts.fact_kinds import FACT_KINDS, subject_of
from gossamer_ir.nodes import (
    Binary,
    BitCounts,
    Block,
    BlockIter,
    Call,
    Cast,
    Const,
    Expr,
    Fact,
    For,
    Function,
    HasValue,
    IfThenElse,
    InRange,
    Load,
    Range,
    Search,
    Select,
    Stmt,
    Unary,
    Var,
    VScale,
)
from gossamer_ir.traversal.statement_queries import loop_of, values_after
from gossamer_ir.traversal.walk import stmts

MAX_VSCALE = 2**10
"""A generous bound of vscale: vectors of Arm SVE have at most 2048 bits, which is a vscale of 16."""


class _IndexFacts:
    """The facts that bound values, or that relate an element to its index."""

    def __init__(self, facts: tuple[Fact, ...]) -> None:
        index = fact_index(facts)
        self.ranges = {fact.buffer: fact for fact in index.facts_of_type(InRange)}
        first = {f.buffer for f in index.facts_of_type(HasValue) if f.index == f.value == ZERO}
        self.bit_counts = first & {fact.indptr for fact in index.facts_of_type(BitCounts)}
        # These facts constrain an element by its index. A proof may use them, so the index must be exact.
        self.ordered = frozenset(
            subject_of(fact) for fact in facts if FACT_KINDS[type(fact)].orders_elements
        )


# Memoized because passes produce functions that differ in their bodies only.
_index_facts = lru_cache(maxsize=64)(_IndexFacts)


class ValueBounds:
    """Bounds of the absolute values of sizes, variables, elements of index buffers, and expressions.

    >>> from gossamer_ir.core.build import ZERO, index, index_var, mul
    >>> bounds, i = ValueBounds(Function("f", (), ())), index_var("i")
    >>> bounds.bind_loop(For("i", ZERO, index(100), ()))
    >>> bounds.bound(mul(i, index(8)))
    792
    """

    def __init__(self, function: Function) -> None:
        self._passed = array_extents(function.buffers, function.axes)
        self._facts = _index_facts(invariant_facts(function))
        self._vars = dict(self._passed.sizes)
        self._bound: dict[str, For | tuple[Expr, ...]] = {}
        self._domain_extents: dict[str, Expr] = {}
        self._open = 0
        self._limits: dict[Expr, int] = {}
        self._extents = self._passed.extents
        self._ranges = dict(self._facts.ranges)

    def copy(self) -> Self:
        """Return a copy, to which bounds may be added without changing the original."""
        result = copy(self)
        result._vars, result._bound = dict(self._vars), dict(self._bound)
        result._domain_extents = dict(self._domain_extents)
        result._limits = {}
        return result

    def bind_all(self, body: Iterable[Stmt]) -> None:
        """Record the variables of all loops, blocks and lets in a body; names are unique in a function."""
        self.bind_each(stmts(body))

    def bind_each(self, every: Iterable[Stmt]) -> None:
        """Record the variables that these statements bind, without those in their bodies."""
        for stmt in every:
            loop = loop_of(stmt)
            if loop is not None:
                self.bind_loop(loop)
            elif isinstance(stmt, Block):
                for iterator in stmt.iters:
                    self._bind_iterator(iterator, stmt)
            else:
                for var, value in values_after(stmt):
                    if var.dtype == "int64":
                        self.bind(var.name, value)

    def _bind_iterator(self, iterator: BlockIter, block: Block) -> None:
        """Record the variable of an iterator. A predicate is also evaluated for values outside the domain,
        which it may exclude; with a predicate, only the value bounds the variable."""
        if block.predicate is None:
            self.bind(iterator.var, iterator.domain.start, iterator.domain.extent)
            self._bind_extent(iterator.var, iterator.domain)
        else:
            self.bind(iterator.var, iterator.value)

    def bind_loop(self, loop: For) -> None:
        """Record that the variable of a loop is less than its end."""
        self._forget(loop.var)
        self._bound[loop.var] = loop
        self._bind_extent(loop.var, loop)

    def _bind_extent(self, var_name: str, domain: For | Range) -> None:
        if domain.start == ZERO:
            self._domain_extents[var_name] = domain.extent

    def bind(self, var_name: str, *values: Expr) -> None:
        """Record that a variable is at most the sum of the bounds of these values."""
        self._forget(var_name)
        self._bound[var_name] = values

    def is_bound(self, var_name: str) -> bool:
        """Return whether a bound of a variable was recorded."""
        return var_name in self._bound or var_name in self._vars

    def _forget(self, var_name: str) -> None:
        """Discard results that may depend on an earlier bound of a variable."""
        self._vars.pop(var_name, None)
        self._domain_extents.pop(var_name, None)
        self._limits.clear()

    def _var_bound(self, name: str, dtype: str) -> int:
        """Return the bound of a variable, computed on demand, since most are never needed."""
        if name not in self._vars and name in self._bound:
            bound = self._bound.pop(
                name
            )  # removed first, so that a cyclic bound ends the recursion
            self._open += 1
            if isinstance(bound, For):
                # The absolute value of the last iteration; without an iteration the variable has no value.
                limit = self.bound(bound.start) + max(self.bound(bound.extent) - 1, 0)
            else:
                limit = sum(map(self.bound, bound))
            self._open -= 1
            self._vars[name] = limit
        return self._vars.get(name, limit_of(dtype))

    def is_nonnegative(self, expr: Expr) -> bool:
        """Return whether a sum of products of constants, vscale, variables of loops from 0 and elements that
        a fact bounds from below is not negative, provided that it does not wrap; False for any other
        expression."""
        match expr:
            case Const():
                return is_nonnegative_integer(expr)
            case VScale():
                return True
            case Var(name=name):
                return name in self._domain_extents
            case Load(buffer=buffer):
                fact = self._facts.ranges.get(buffer)
                return fact is not None and is_nonnegative_integer(fact.low)
            # Not of a sum, which may wrap in fewer bits.
            case Cast(dtype="int64", value=Load() as load):
                return self.is_nonnegative(load)
            case Binary(op="add" | "mul"):
                return self._are_nonnegative(expr)
        return False

    def bound(self, expr: Expr) -> int:
        """Return a bound of the absolute value of an expression at run time."""
        limit = self._limits.get(expr)
        if limit is None:
            limit = min(self.unwrapped_bound(expr), limit_of(dtype_of(expr)))
            if (
                not self._open
            ):  # otherwise the bound is valid but may be loose: some bounds are removed
                self._limits[expr] = limit
        return limit

    def product_bound(self, factors: Sequence[Expr]) -> int:
        """Return a bound of the absolute value of a product of integers that do not wrap. The product of all
        extents of an array argument is its number of elements, at most `MAX_ARRAY`."""
        limit = prod(map(self.bound, factors))
        if limit <= MAX_ARRAY:
            return limit
        within = [self._extent_around(factor) for factor in factors]
        return min(limit, self._passed.bound_of_product(within, self._ranges) or limit)

    def _extent_around(self, factor: Expr) -> Expr:
        """Return the extent of the domain of a variable, which is greater; any other factor itself."""
        return self._domain_extents.get(factor.name, factor) if isinstance(factor, Var) else factor

    def unwrapped_bound(self, expr: Expr) -> int:
        """Return a bound of the value that the operation of an expression has before it wraps."""
        if expr in self._extents:
            return MAX_SIZE
        match expr:
            case Const():
                value = integer_value(expr)
                return limit_of(expr.dtype) if value is None else abs(value)
            case Var():
                return self._var_bound(expr.name, expr.dtype)
            case Binary():
                return self._binary_bound(expr)
            case Unary(op="neg"):
                return self.bound(expr.operand)
            # A float may be anything, and saturates when it is cast.
            case Cast() if DType.parse(dtype_of(expr.value)).is_integer:
                return self.bound(expr.value)
            case Select() | IfThenElse():
                return max(self.bound(expr.if_true), self.bound(expr.if_false))
            case Load():
                return self._load_bound(expr)
            case VScale():
                return MAX_VSCALE
            case Call() if FUNCTIONS[expr.function].counts_bits:
                return DType.parse(expr.dtype).bits
            case Search():
                # 1 for the result -1 of a search that finds nothing.
                return max(self.bound(expr.begin), self.bound(expr.end), 1)
        return limit_of(dtype_of(expr))

    def _binary_bound(self, expr: Binary) -> int:
        lhs, rhs, limit = self.bound(expr.lhs), self.bound(expr.rhs), limit_of(dtype_of(expr))
        match expr.op:
            case "sub" if max(lhs, rhs) < limit and self._are_nonnegative(expr):
                return max(lhs, rhs)
            case "add" | "sub":
                return lhs + rhs
            case "mul":
                # The simple product first: of_product looks for arrays whose size bounds
                # all factors together.
                return lhs * rhs if lhs * rhs < limit else self.product_bound(factors_of(expr))
            case "floordiv":
                divisor = max(self._lower_bound_of(expr.rhs), 1)
                # Rounded up: -7 // 2 is -4.
                return -(-lhs // divisor)
            case "shr":
                return lhs
            # The remainder is closer to 0 than the divisor, whatever the dividend.
            case "floormod":
                return rhs
            case "min" | "max":
                return max(lhs, rhs)
            case "bitand":
                masks = map(integer_value, (expr.lhs, expr.rhs))
                return min(
                    (mask for mask in masks if mask is not None and mask >= 0), default=limit
                )
        return limit

    def _are_nonnegative(self, expr: Binary) -> bool:
        return self.is_nonnegative(expr.lhs) and self.is_nonnegative(expr.rhs)

    def _lower_bound_of(self, expr: Expr) -> int:
        """Return a lower bound of the absolute value of a constant or of a number of lanes, 0 of others."""
        match expr:
            case VScale():
                return 1
            # A product that wraps around may be any number.
            case Binary(op="mul", lhs=lhs, rhs=rhs) if self._fits(lhs, rhs, dtype_of(expr)):
                return self._lower_bound_of(lhs) * self._lower_bound_of(rhs)
        return abs(integer_value(expr) or 0)

    def _fits(self, lhs: Expr, rhs: Expr, dtype: str) -> bool:
        return self.bound(lhs) * self.bound(rhs) < limit_of(dtype)

    def _load_bound(self, load: Load) -> int:
        limit = limit_of(load.dtype)
        if load.buffer in self._facts.bit_counts:
            # The words that are counted are an array, too, and each of its bytes has 8 bits.
            limit = min(limit, 8 * MAX_ARRAY)
        fact = self._ranges.pop(
            load.buffer, None
        )  # removed, since its ends may read the buffer itself
        if fact is None:
            return limit
        self._open += 1
        element_bound = max(self.bound(fact.low), self.bound(fact.high))
        self._open -= 1
        self._ranges[load.buffer] = fact
        return min(limit, element_bound)


@cache
def limit_of(dtype_name: str) -> int:
    """Return an upper bound of the absolute values of a dtype; 2**63 if it is not an integer."""
    dtype = DType.parse(dtype_name)
    return 1 << (dtype.bits - (dtype.kind == "int")) if dtype.is_integer else 1 << 63
