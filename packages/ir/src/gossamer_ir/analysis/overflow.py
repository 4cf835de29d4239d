"""How large integers get, so that proofs in unbounded integers hold for machine integers, which wrap.

A sum or product that stays in [0, extent) is the same for both; what is compared, or divided, must
be known not to wrap before.
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
from gossamer_ir.traversal.identity_cache import memoize_by_identity
from gossamer_ir.traversal.walk import LEAVES, children, every_statement, free_vars, statements

LARGEST_VSCALE = 2**10
LARGEST_ARRAY = 2**57
"""Processors have addresses of 57 bits at most, and an element has one of its own."""
_RING = ("add", "sub", "mul")
_KNOWN = ("floordiv", "floormod", "min", "max", "shr")
"""Operations about whose operands the prover knows something."""


@memoize_by_identity
def magnitudes_of(function: Function) -> Magnitudes:
    """Bounds of all variables of a function, and of the index buffers that it does not write."""
    found = Magnitudes(function)
    found.bind_each(every_statement(function))
    return found


class Part(NamedTuple):
    """A size divided by a number, rounded up."""

    size: Expr
    divisor: int


class _Passed:
    """What is known of the arrays that a function is passed, whatever it does with them."""

    def __init__(self, buffers: tuple[AnyBuffer, ...], axes: tuple[Axis, ...]) -> None:
        self._bound = [buffer for buffer in buffers if buffer.handle is not None]
        self._axes = axes
        found: list[Expr] = []
        for buffer in self._bound:
            found += buffer.shape if isinstance(buffer, Buffer) else _extents_of(buffer, axes)
        self.every = tuple(found)
        self.sizes = {name: LARGEST_SIZE for extent in found for name in free_vars(extent)}
        self._shapes = [found.shape for found in self._bound if isinstance(found, Buffer)]
        extents: set[Expr] = {
            shape[0]
            for shape in self._shapes
            if len(shape) == 1 and not isinstance(shape[0], Const)
        }
        less: set[Expr] = {found.lhs for found in extents if _is_one_more(found)}
        self.extents = extents | less

    @cached_property
    def arrays(self) -> dict[tuple[Expr, ...], int]:
        """Found out when asked for: most products are small."""
        return _arrays((*self._shapes, *_fixed_shapes(self._bound, self._axes)))


class _Said:
    """What facts say that matters here."""

    def __init__(self, facts: tuple[Fact, ...]) -> None:
        self.ranges = {fact.buffer: fact for fact in facts if isinstance(fact, InRange)}
        # What these facts say of an element depends on its index, which then must not wrap.
        self.ordered = frozenset(
            fact.buffer
            for fact in facts
            if isinstance(fact, (HasValue, Monotone, ProductSteps, SortedSegments))
        )


# Passes ask about functions that differ in their bodies only.
_passed = lru_cache(maxsize=64)(_Passed)
_said = lru_cache(maxsize=64)(_Said)


class Magnitudes:
    """Bounds of absolute values: of sizes, of variables as they are bound, of index buffers."""

    def __init__(self, function: Function) -> None:
        self._passed = _passed(function.buffers, function.axes)
        said = _said(invariant_facts(function))
        self._variables = dict(self._passed.sizes)
        self._bound: dict[str, For | tuple[Expr, ...]] = {}
        self._open = 0
        self._found: dict[Expr, int] = {}
        self._exact: dict[Node, bool] = {}
        self._extents = self._passed.extents
        self._ranges = dict(said.ranges)
        self._ordered = said.ordered

    def copy(self) -> Magnitudes:
        """The same bounds, to which others may be added."""
        found = copy(self)
        found._variables, found._bound = dict(self._variables), dict(self._bound)
        found._found, found._exact = {}, {}
        return found

    def bind_all(self, body: Iterable[Stmt]) -> None:
        """Variables of loops, blocks and lets, whose names are unique in a function."""
        self.bind_each(statements(body))

    def bind_each(self, every: Iterable[Stmt]) -> None:
        """Variables that statements bind themselves."""
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
        """The variable of an iterator is in its domain, but for where a predicate is evaluated that may
        leave out a value outside of it."""
        if block.predicate is None:
            self.bind(item.var, item.domain.start, item.domain.extent)
        else:
            self.bind(item.var, item.value)

    def bind_loop(self, loop: For) -> None:
        """The variable of a loop is below its end."""
        self._forget(loop.var)
        self._bound[loop.var] = loop

    def bind(self, variable: str, *values: Expr) -> None:
        """A variable is at most as large as these together."""
        self._forget(variable)
        self._bound[variable] = values

    def _forget(self, variable: str) -> None:
        """What was found while the variable had another bound."""
        self._variables.pop(variable, None)
        self._found.clear()
        self._exact.clear()

    def _of_variable(self, name: str, dtype: str) -> int:
        """Found out when first asked for: most variables are not."""
        if name not in self._variables and name in self._bound:
            bound = self._bound.pop(name)  # so that a variable does not bound itself
            self._open += 1
            if isinstance(bound, For):
                found = self.of(bound.start) + max(self.of(bound.extent) - 1, 0)
            else:
                found = sum(map(self.of, bound))
            self._open -= 1
            self._variables[name] = found
        return self._variables.get(name, _limit(dtype))

    def of(self, expr: Expr) -> int:
        """A bound of the absolute value at run time."""
        found = self._found.get(expr)
        if found is None:
            found = min(self._unwrapped(expr), _limit(dtype_of(expr)))
            if not self._open:  # else some bounds are left out
                self._found[expr] = found
        return found

    def of_product(self, factors: Sequence[Expr]) -> int:
        """A bound of the absolute value of a product of integers that do not wrap: that of all extents of
        an array that is passed is the number of its elements."""
        found = prod(map(self.of, factors))
        return found if found <= LARGEST_ARRAY else min(found, self._of_array(factors) or found)

    def _of_array(self, factors: Sequence[Expr]) -> int | None:
        """A bound of a product whose factors are at most the extents of an array that is passed, each
        divided by a number and rounded up."""
        constants = [abs(value) for value in map(integer_value, factors) if value is not None]
        others = [factor for factor in factors if integer_value(factor) is None]
        parts = [self._part_of_size(factor) or Part(factor, 1) for factor in others]
        elements = self._passed.arrays.get(_in_order(part.size for part in parts))
        if elements is None:
            return None
        # A part is less than its quotient plus 1, and the product of such sums is a sum of products. Where
        # an extent is 0, so is its part; else some of the extents have no larger product than all.
        whole = 0
        for kept in product(*((True, False) if part.divisor > 1 else (True,) for part in parts)):
            divisors = [part.divisor for part, is_kept in zip(parts, kept, strict=True) if is_kept]
            whole += min(elements, LARGEST_SIZE ** len(divisors)) // prod(divisors) + 1
        return whole * prod(constants)

    def _part_of_size(self, expr: Expr) -> Part | None:
        """The size, and what it is divided by, that a value, or the difference of two, is at most: what is
        loaded from an array of offsets, of which a fact says that it lies in [0, size + 1)."""
        match expr:
            case Cast():
                return self._part_of_size(expr.value)
            case Load():
                fact = self._ranges.get(expr.buffer)
                if fact is None or fact.low != ZERO or not _is_one_more(fact.high):
                    return None
                return Part(fact.high.lhs, 1)
            case Binary(op="sub"):
                above = self._part_of_size(expr.lhs)
                return above if above == self._part_of_size(expr.rhs) else None
            case Binary(op="add" | "floordiv"):
                found = _rounded_quotient(expr)
                if found is not None:
                    dividend, divisor = found
                    above = self._part_of_size(dividend) or Part(dividend, 1)
                    return Part(above.size, above.divisor * divisor)
        return None

    def is_exact(self, expr: Node) -> bool:
        """Whether no operation in an integer expression wraps."""
        if type(expr) in LEAVES or expr in self._extents:
            return True
        found = self._exact.get(expr)
        if found is None:
            found = self._exact[expr] = self._is_exact(expr)
        return found

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
        """Whether an integer expression is what it would be without wrapping, if it is in range."""
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
        fact = self._ranges.pop(load.buffer, None)  # its ends may read the buffer itself
        if fact is None:
            return limit
        self._open += 1
        found = max(self.of(fact.low), self.of(fact.high))
        self._open -= 1
        self._ranges[load.buffer] = fact
        return found


def extents_passed(function: Function) -> tuple[Expr, ...]:
    """The extents of the arrays that a function is given, which are not negative."""
    return _passed(function.buffers, function.axes).every


def _extents_of(buffer: SparseBuffer, axes: tuple[Axis, ...]) -> Iterator[Expr]:
    """What a sparse buffer holds along each dimension, as far as its array says so at a call."""
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
    """The shapes of the arrays of sparse buffers all of whose fibres have one length."""
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
    """A bound of the product of those extents of arrays that are not constants, by these extents."""
    found: dict[tuple[Expr, ...], int] = {}
    for shape in shapes:
        constant = prod(integer_value(extent) or 0 for extent in shape if isinstance(extent, Const))
        others = _in_order(extent for extent in shape if not isinstance(extent, Const))
        if constant > 0:
            found[others] = min(found.get(others, LARGEST_ARRAY), LARGEST_ARRAY // constant)
    return found


def _in_order(extents: Iterable[Expr]) -> tuple[Expr, ...]:
    return tuple(sorted(extents, key=repr))


def _rounded_quotient(expr: Binary) -> tuple[Expr, int] | None:
    """A dividend and a divisor whose quotient, rounded up, is an expression, or is not below it."""
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
    """Whether an extent is that of offsets, one more than a size."""
    return isinstance(extent, Binary) and extent.op == "add" and extent.rhs == ONE


@cache
def _limit(dtype: str) -> int:
    """What no absolute value of a dtype exceeds."""
    kind = DType.parse(dtype)
    return 1 << (kind.bits - (kind.kind == "int")) if kind.is_integer else 1 << 63
