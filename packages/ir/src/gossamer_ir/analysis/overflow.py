"""Overflow analysis: bounds of absolute values, so that proofs about unbounded integers carry over.

The prover uses unbounded integers, machine integers wrap. Addition, subtraction and multiplication agree
modulo 2**bits: if the unbounded result is in [0, extent), the machine result is the same, even if
intermediate values wrap (`is_sound`). The operands of comparisons and divisions must not wrap (`is_exact`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from functools import cache, cached_property, lru_cache
from itertools import product
from math import prod
from typing import NamedTuple, TypeGuard

from gossamer_ir.analysis.invariants import invariant_facts
from gossamer_ir.arith.affine import factors_of
from gossamer_ir.core.build import ONE, ZERO, add, dtype_of, index, integer_value
from gossamer_ir.core.dtypes import DType
from gossamer_ir.interchange.records import LARGEST_SIZE
from gossamer_ir.nodes import (
    AnyBuffer,
    Axis,
    Binary,
    Block,
    BlockIter,
    Buffer,
    Cast,
    Compare,
    CompressedFixed,
    CompressedVaried,
    Const,
    DenseFixed,
    DenseVaried,
    Expr,
    Fact,
    For,
    Function,
    HasValue,
    IfThenElse,
    InRange,
    Let,
    Load,
    Monotone,
    Node,
    ProductSteps,
    Search,
    Select,
    SortedSegments,
    SparseBuffer,
    Stmt,
    Unary,
    Var,
    VScale,
)  # fmt: skip
from gossamer_ir.support.identity_cache import memoize_by_identity
from gossamer_ir.traversal.fields import LEAVES
from gossamer_ir.traversal.references import free_vars
from gossamer_ir.traversal.walk import children, every_statement, statements

LARGEST_VSCALE = 2**10
"""A generous bound of vscale: vectors of Arm SVE have at most 2048 bits, which is a vscale of 16."""
LARGEST_ARRAY = 2**57
"""A bound of the elements of an array: addresses have at most 57 bits, and each element has its own."""
_RING = ("add", "sub", "mul")
"""Operations that agree for machine and unbounded integers modulo 2**bits."""
_KNOWN = ("floordiv", "floormod", "min", "max", "shr")
"""Operations whose operands the prover inspects; these operands must not overflow."""


@memoize_by_identity
def overflow_of(function: Function) -> OverflowAnalysis:
    """Bounds for all variables of a function, and for the index buffers that it does not write."""
    analysis = OverflowAnalysis(function)
    analysis.bind_each(every_statement(function))
    return analysis


class CeilQuotient(NamedTuple):
    """A size divided by a number, rounded up."""

    size: Expr
    divisor: int


class _ArrayExtents:
    """The extents of the arrays that are passed to a function. They do not depend on its body."""

    def __init__(self, buffers: tuple[AnyBuffer, ...], axes: tuple[Axis, ...]) -> None:
        self._bound = [buffer for buffer in buffers if buffer.handle is not None]
        self._axes = axes
        every: list[Expr] = []
        for buffer in self._bound:
            every += buffer.shape if isinstance(buffer, Buffer) else _extents_of(buffer, axes)
        self.every = tuple(every)
        self.sizes = {name: LARGEST_SIZE for extent in every for name in free_vars(extent)}
        self._shapes = [buffer.shape for buffer in self._bound if isinstance(buffer, Buffer)]
        extents: set[Expr] = {
            shape[0]
            for shape in self._shapes
            if len(shape) == 1 and not isinstance(shape[0], Const)
        }
        less: set[Expr] = {extent.lhs for extent in extents if _is_one_more(extent)}
        self.extents = extents | less

    @cached_property
    def arrays(self) -> dict[tuple[Expr, ...], int]:
        """Computed on demand, since most products are small enough without it."""
        return _arrays((*self._shapes, *_fixed_shapes(self._bound, self._axes)))


class _IndexFacts:
    """The facts that bound values, or that relate an element to its index."""

    def __init__(self, facts: tuple[Fact, ...]) -> None:
        self.ranges = {fact.buffer: fact for fact in facts if isinstance(fact, InRange)}
        # These facts constrain an element by its index. A proof may use them, so the index must be exact.
        self.ordered = frozenset(
            fact.buffer
            for fact in facts
            if isinstance(fact, (HasValue, Monotone, ProductSteps, SortedSegments))
        )


# Memoized because passes produce functions that differ in their bodies only.
_array_extents = lru_cache(maxsize=64)(_ArrayExtents)
_index_facts = lru_cache(maxsize=64)(_IndexFacts)


class OverflowAnalysis:
    """Bounds of the absolute values of sizes, variables, elements of index buffers, and expressions."""

    def __init__(self, function: Function) -> None:
        self._passed = _array_extents(function.buffers, function.axes)
        facts = _index_facts(invariant_facts(function))
        self._variables = dict(self._passed.sizes)
        self._bound: dict[str, For | tuple[Expr, ...]] = {}
        self._open = 0
        self._limits: dict[Expr, int] = {}
        self._exact: dict[Node, bool] = {}
        self._extents = self._passed.extents
        self._ranges = dict(facts.ranges)
        self._ordered = facts.ordered

    def copy(self) -> OverflowAnalysis:
        """A copy, to which bounds may be added without changing the original."""
        result = copy(self)
        result._variables, result._bound = dict(self._variables), dict(self._bound)
        result._limits, result._exact = {}, {}
        return result

    def bind_all(self, body: Iterable[Stmt]) -> None:
        """Records the variables of all loops, blocks and lets in a body; names are unique in a function."""
        self.bind_each(statements(body))

    def bind_each(self, every: Iterable[Stmt]) -> None:
        """Records the variables that these statements bind, without those in their bodies."""
        for stmt in every:
            match stmt:
                case For():
                    self.bind_loop(stmt)
                case Let() if stmt.var.dtype == "int64":
                    self.bind(stmt.var.name, stmt.value)
                case Block():
                    for item in stmt.iters:
                        self._bind_iterator(item, stmt)

    def _bind_iterator(self, item: BlockIter, block: Block) -> None:
        """Records the variable of an iterator. A predicate is also evaluated for values outside the domain,
        which it may exclude; with a predicate, only the value bounds the variable."""
        if block.predicate is None:
            self.bind(item.var, item.domain.start, item.domain.extent)
        else:
            self.bind(item.var, item.value)

    def bind_loop(self, loop: For) -> None:
        """Records that the variable of a loop is less than its end."""
        self._forget(loop.var)
        self._bound[loop.var] = loop

    def bind(self, variable: str, *values: Expr) -> None:
        """Records that a variable is at most the sum of the bounds of these values."""
        self._forget(variable)
        self._bound[variable] = values

    def _forget(self, variable: str) -> None:
        """Discards results that may depend on an earlier bound of a variable."""
        self._variables.pop(variable, None)
        self._limits.clear()
        self._exact.clear()

    def _of_variable(self, name: str, dtype: str) -> int:
        """The bound of a variable, computed on demand, since most are never needed."""
        if name not in self._variables and name in self._bound:
            bound = self._bound.pop(
                name
            )  # removed first, so that a cyclic bound ends the recursion
            self._open += 1
            if isinstance(bound, For):
                limit = self.of(bound.start) + max(self.of(bound.extent) - 1, 0)
            else:
                limit = sum(map(self.of, bound))
            self._open -= 1
            self._variables[name] = limit
        return self._variables.get(name, _limit(dtype))

    def of(self, expr: Expr) -> int:
        """A bound of the absolute value of an expression at run time."""
        limit = self._limits.get(expr)
        if limit is None:
            limit = min(self._unwrapped(expr), _limit(dtype_of(expr)))
            if (
                not self._open
            ):  # otherwise the bound is valid but may be loose: some bounds are removed
                self._limits[expr] = limit
        return limit

    def of_product(self, factors: Sequence[Expr]) -> int:
        """A bound of the absolute value of a product of integers that do not wrap. The product of all
        extents of an array argument is its number of elements, at most `LARGEST_ARRAY`."""
        limit = prod(map(self.of, factors))
        return limit if limit <= LARGEST_ARRAY else min(limit, self._of_array(factors) or limit)

    def _of_array(self, factors: Sequence[Expr]) -> int | None:
        """A bound of a product whose factors are at most the extents of an array argument, each divided by a
        constant and rounded up; None for other products."""
        constants = [abs(value) for value in map(integer_value, factors) if value is not None]
        others = [factor for factor in factors if integer_value(factor) is None]
        parts = [self._part_of_size(factor) or CeilQuotient(factor, 1) for factor in others]
        elements = self._passed.arrays.get(_in_order(part.size for part in parts))
        if elements is None:
            return None
        # ceil(size / d) < size / d + 1. Expanding the product of these sums gives one product for each
        # subset of the sizes. If an extent is 0, so is its part and the whole product; otherwise the product
        # of some extents is at most that of all, the number of elements.
        whole = 0
        for kept in product(*((True, False) if part.divisor > 1 else (True,) for part in parts)):
            divisors = [part.divisor for part, is_kept in zip(parts, kept, strict=True) if is_kept]
            whole += min(elements, LARGEST_SIZE ** len(divisors)) // prod(divisors) + 1
        return whole * prod(constants)

    def _part_of_size(self, expr: Expr) -> CeilQuotient | None:
        """An upper bound `size / divisor`, rounded up, of a value or of the difference of two values.

        The values are loaded from an array of offsets that a fact bounds to [0, size + 1), or are quotients
        of such values.
        """
        match expr:
            case Cast():
                return self._part_of_size(expr.value)
            case Load():
                fact = self._ranges.get(expr.buffer)
                if fact is None or fact.low != ZERO or not _is_one_more(fact.high):
                    return None
                return CeilQuotient(fact.high.lhs, 1)
            case Binary(op="sub"):
                above = self._part_of_size(expr.lhs)
                return above if above == self._part_of_size(expr.rhs) else None
            case Binary(op="add" | "floordiv"):
                quotient = _rounded_quotient(expr)
                if quotient is not None:
                    dividend, divisor = quotient
                    above = self._part_of_size(dividend) or CeilQuotient(dividend, 1)
                    return CeilQuotient(above.size, above.divisor * divisor)
        return None

    def is_exact(self, expr: Node) -> bool:
        """True if no operation in an integer expression wraps."""
        if type(expr) in LEAVES or expr in self._extents:
            return True
        exact = self._exact.get(expr)
        if exact is None:
            exact = self._exact[expr] = self._is_exact(expr)
        return exact

    def _is_exact(self, expr: Node) -> bool:
        match expr:
            case Binary(op="add" | "sub" | "mul"):
                fits = self._unwrapped(expr) < _limit(dtype_of(expr))
                return fits and self.is_exact(expr.lhs) and self.is_exact(expr.rhs)
            case Unary(op="neg"):
                fits = self.of(expr.operand) < _limit(dtype_of(expr))
                return fits and self.is_exact(expr.operand)
            case Select() | IfThenElse() | Binary(op="and" | "or" | "min" | "max"):
                return all(map(self.is_exact, children(expr)))
        return self.is_sound(expr)

    def is_sound(self, expr: Node) -> bool:
        """True if an integer expression equals its unbounded value modulo 2**bits, so that the two are equal
        if the unbounded value is in range."""
        if type(expr) in LEAVES:
            return True
        match expr:
            case Binary() if expr.op in _RING:
                return self.is_sound(expr.lhs) and self.is_sound(expr.rhs)
            case Binary() if expr.op in _KNOWN:
                return self.is_exact(expr.lhs) and self.is_exact(expr.rhs)
            case Compare() | Cast():
                return all(map(self.is_exact, children(expr)))
            case Select() | IfThenElse():
                sides = (expr.if_true, expr.if_false)
                return self.is_exact(expr.condition) and all(map(self.is_sound, sides))
            case Search():
                return all(map(self.is_exact, children(expr)))
            case Load() if expr.buffer in self._ordered:
                return all(map(self.is_exact, expr.indices))
        return all(map(self.is_sound, children(expr)))

    def _unwrapped(self, expr: Expr) -> int:
        if expr in self._extents:
            return LARGEST_SIZE
        match expr:
            case Const():
                value = integer_value(expr)
                return _limit(expr.dtype) if value is None else abs(value)
            case Var():
                return self._of_variable(expr.name, expr.dtype)
            case Binary():
                return self._of_binary(expr)
            case Unary(op="neg"):
                return self.of(expr.operand)
            case Cast() if DType.parse(dtype_of(expr.value)).is_integer:
                return self.of(expr.value)
            case Select() | IfThenElse():
                return max(self.of(expr.if_true), self.of(expr.if_false))
            case Load():
                return self._of_load(expr)
            case VScale():
                return LARGEST_VSCALE
            case Search():
                return max(self.of(expr.begin), self.of(expr.end), 1)
        return _limit(dtype_of(expr))

    def _of_binary(self, expr: Binary) -> int:
        lhs, rhs, limit = self.of(expr.lhs), self.of(expr.rhs), _limit(dtype_of(expr))
        match expr.op:
            case "add" | "sub":
                return lhs + rhs
            case "mul":
                return lhs * rhs if lhs * rhs < limit else self.of_product(factors_of(expr))
            case "floordiv":
                divisor = abs(integer_value(expr.rhs) or 1)
                return -(-lhs // divisor)
            case "shr":
                return lhs
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

    def _of_load(self, load: Load) -> int:
        limit = _limit(load.dtype)
        fact = self._ranges.pop(
            load.buffer, None
        )  # removed, since its ends may read the buffer itself
        if fact is None:
            return limit
        self._open += 1
        of_elements = max(self.of(fact.low), self.of(fact.high))
        self._open -= 1
        self._ranges[load.buffer] = fact
        return of_elements


def extents_passed(function: Function) -> tuple[Expr, ...]:
    """The extents of the arrays that are passed to a function. They are not negative."""
    return _array_extents(function.buffers, function.axes).every


def _extents_of(buffer: SparseBuffer, axes: tuple[Axis, ...]) -> Iterator[Expr]:
    """The extents of a sparse buffer along its axes that the shape of its array determines at a call."""
    for axis in axes:
        if axis.name in buffer.axes:
            match axis:
                case DenseFixed():
                    yield axis.length
                case CompressedFixed():
                    yield axis.width
                case DenseVaried() | CompressedVaried() if axis.nnz is not None:
                    yield axis.nnz


def _fixed_shapes(
    buffers: Iterable[AnyBuffer], axes: tuple[Axis, ...]
) -> Iterator[tuple[Expr, ...]]:
    """The shapes of the arrays of sparse buffers whose axes are all fixed."""
    lengths: dict[str, Expr] = {}
    for axis in axes:
        match axis:
            case DenseFixed():
                lengths[axis.name] = axis.length
            case CompressedFixed():
                lengths[axis.name] = axis.width
    for buffer in buffers:
        if not isinstance(buffer, Buffer) and lengths.keys() >= set(buffer.axes):
            yield tuple(lengths[name] for name in buffer.axes)


def _arrays(shapes: Iterable[tuple[Expr, ...]]) -> dict[tuple[Expr, ...], int]:
    """A bound of the product of the extents of an array that are not constant, by these extents."""
    arrays: dict[tuple[Expr, ...], int] = {}
    for shape in shapes:
        constant = prod(integer_value(extent) or 0 for extent in shape if isinstance(extent, Const))
        others = _in_order(extent for extent in shape if not isinstance(extent, Const))
        if constant > 0:
            arrays[others] = min(arrays.get(others, LARGEST_ARRAY), LARGEST_ARRAY // constant)
    return arrays


def _in_order(extents: Iterable[Expr]) -> tuple[Expr, ...]:
    return tuple(sorted(extents, key=repr))


def _rounded_quotient(expr: Binary) -> tuple[Expr, int] | None:
    """A dividend and a divisor whose quotient, rounded up, is at least the expression; None if it does not
    have such a form."""
    if expr.op == "add":
        quotient, rest = expr.lhs, expr.rhs
        if not isinstance(quotient, Binary) or quotient.op != "floordiv":
            return None
        is_rest = rest == Binary("min", Binary("floormod", quotient.lhs, quotient.rhs), ONE)
        divisor = integer_value(quotient.rhs)
        return (quotient.lhs, divisor) if is_rest and divisor is not None and divisor > 0 else None
    divisor = integer_value(expr.rhs)
    if expr.op != "floordiv" or divisor is None or divisor < 1:
        return None
    dividend = expr.lhs
    if isinstance(dividend, Binary) and dividend.op == "add":
        more = integer_value(dividend.rhs)
        if more is not None and more >= divisor - 1:
            return add(dividend.lhs, index(more - divisor + 1)), divisor
    return dividend, divisor


def _is_one_more(extent: Expr) -> TypeGuard[Binary]:
    """True if an extent has the form size + 1, as that of an array of offsets."""
    return isinstance(extent, Binary) and extent.op == "add" and extent.rhs == ONE


@cache
def _limit(dtype: str) -> int:
    """An upper bound of the absolute values of a dtype; 2**63 if it is not an integer."""
    kind = DType.parse(dtype)
    return 1 << (kind.bits - (kind.kind == "int")) if kind.is_integer else 1 << 63
