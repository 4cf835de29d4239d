"""How large integers get, so that proofs in unbounded integers hold for machine integers, which wrap.

A sum or product that stays in [0, extent) is the same for both; what is compared, or divided, must
be known not to wrap before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import prod
from typing import TypeGuard

from gossamer_ir.affine import factors_of
from gossamer_ir.build import ONE, ZERO, dtype_of, integer_value
from gossamer_ir.contracts import LARGEST_SIZE
from gossamer_ir.dtypes import DType
from gossamer_ir.lasting import lasting_facts
from gossamer_ir.nodes import (
    AnyBuffer,
    Axis,
    Binary,
    Block,
    Buffer,
    Cast,
    Compare,
    CompressedFixed,
    CompressedVaried,
    Const,
    DenseFixed,
    DenseVaried,
    Expr,
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
    Stmt,
    Unary,
    Var,
    VScale,
)  # fmt: skip
from gossamer_ir.remembered import remembered
from gossamer_ir.walk import LEAVES, children, free_vars, statements

LARGEST_VSCALE = 2**10
LARGEST_ARRAY = 2**57
"""Processors have addresses of 57 bits at most, and an element has one of its own."""
_RING = ("add", "sub", "mul")
_KNOWN = ("floordiv", "floormod", "min", "max", "shr")
"""Operations about whose operands the prover knows something."""


@remembered
def magnitudes_of(function: Function) -> Magnitudes:
    """Bounds of all variables of a function, and of the index buffers that it does not write."""
    found = Magnitudes(function)
    found.bind_all(function.body)
    return found


class Magnitudes:
    """Bounds of absolute values: of sizes, of variables as they are bound, of index buffers."""

    def __init__(self, function: Function) -> None:
        facts = lasting_facts(function)
        bound = [buffer for buffer in function.buffers if buffer.handle is not None]
        self._variables = {
            name: LARGEST_SIZE
            for buffer in bound
            for extent in _extents_of(buffer, function.axes)
            for name in free_vars(extent)
        }
        self._bound: dict[str, For | tuple[Expr, ...]] = {}
        shapes = [found.shape for found in bound if isinstance(found, Buffer)]
        self._arrays = {tuple(sorted(shape, key=repr)) for shape in shapes}
        extents: set[Expr] = {
            shape[0] for shape in shapes if len(shape) == 1 and not isinstance(shape[0], Const)
        }
        sizes: set[Expr] = {found.lhs for found in extents if _is_one_more(found)}
        self._extents = extents | sizes
        self._ranges = {fact.buffer: fact for fact in facts if isinstance(fact, InRange)}
        # What these facts say of an element depends on its index, which then must not wrap.
        self._ordered = frozenset(
            fact.buffer
            for fact in facts
            if isinstance(fact, (HasValue, Monotone, ProductSteps, SortedSegments))
        )

    def bind_all(self, body: Iterable[Stmt]) -> None:
        """Variables of loops, blocks and lets, whose names are unique in a function."""
        for stmt in statements(body):
            match stmt:
                case For():
                    self.bind_loop(stmt)
                case Let() if stmt.var.dtype == "int64":
                    self.bind(stmt.var.name, stmt.value)
                case Block():
                    for item in stmt.iters:
                        self.bind(item.var, item.domain.start, item.domain.extent)

    def bind_loop(self, loop: For) -> None:
        """The variable of a loop is below its end."""
        self._bound[loop.var] = loop
        self._variables.pop(loop.var, None)

    def bind(self, variable: str, *values: Expr) -> None:
        """A variable is at most as large as these together."""
        self._bound[variable] = values
        self._variables.pop(variable, None)

    def _of_variable(self, name: str, dtype: str) -> int:
        """Found out when first asked for: most variables are not."""
        if name not in self._variables and name in self._bound:
            bound = self._bound.pop(name)  # so that a variable does not bound itself
            if isinstance(bound, For):
                found = self.of(bound.start) + max(self.of(bound.extent) - 1, 0)
            else:
                found = sum(map(self.of, bound))
            self._variables[name] = found
        return self._variables.get(name, _limit(dtype))

    def of(self, expr: Expr) -> int:
        """A bound of the absolute value at run time."""
        return min(self._unwrapped(expr), _limit(dtype_of(expr)))

    def of_product(self, factors: Sequence[Expr]) -> int:
        """A bound of the absolute value of a product of integers that do not wrap: that of all extents of
        an array that is passed is the number of its elements."""
        found = prod(map(self.of, factors))
        bounds = [self._size_above(factor) or factor for factor in factors]
        if found <= LARGEST_ARRAY or tuple(sorted(bounds, key=repr)) not in self._arrays:
            return found
        return LARGEST_ARRAY

    def _size_above(self, expr: Expr) -> Expr | None:
        """The size that a value, or the difference of two, is at most: what is loaded from an array of
        offsets, of which a fact says that it lies in [0, size + 1)."""
        match expr:
            case Cast():
                return self._size_above(expr.value)
            case Load():
                fact = self._ranges.get(expr.buffer)
                if fact is None or fact.low != ZERO or not _is_one_more(fact.high):
                    return None
                return fact.high.lhs
            case Binary(op="sub"):
                above = self._size_above(expr.lhs)
                return above if above == self._size_above(expr.rhs) else None
        return None

    def is_exact(self, expr: Node) -> bool:
        """Whether no operation in an integer expression wraps."""
        if type(expr) in LEAVES or expr in self._extents:
            return True
        match expr:
            case Binary(op="add" | "sub" | "mul"):
                fits = self._unwrapped(expr) < _limit(dtype_of(expr))
                return fits and self.is_exact(expr.lhs) and self.is_exact(expr.rhs)
            case Unary(op="neg"):
                fits = self.of(expr.operand) < _limit(dtype_of(expr))
                return fits and self.is_exact(expr.operand)
            case Compare() | Select() | IfThenElse() | Binary(op="and" | "or" | "min" | "max"):
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
            case Cast():
                return self.is_exact(expr.value)
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
        found = max(self.of(fact.low), self.of(fact.high))
        self._ranges[load.buffer] = fact
        return found


def _extents_of(buffer: AnyBuffer, axes: tuple[Axis, ...]) -> Iterator[Expr]:
    """What a buffer holds along each dimension, as far as its array says so at a call."""
    if isinstance(buffer, Buffer):
        yield from buffer.shape
        return
    for axis in axes:
        if axis.name in buffer.axes:
            match axis:
                case DenseFixed():
                    yield axis.length
                case CompressedFixed():
                    yield axis.width
                case DenseVaried() | CompressedVaried() if axis.nnz is not None:
                    yield axis.nnz


def _is_one_more(extent: Expr) -> TypeGuard[Binary]:
    """Whether an extent is that of offsets, one more than a size."""
    return isinstance(extent, Binary) and extent.op == "add" and extent.rhs == ONE


def _limit(dtype: str) -> int:
    """What no absolute value of a dtype exceeds."""
    kind = DType.parse(dtype)
    return 1 << (kind.bits - (kind.kind == "int")) if kind.is_integer else 1 << 63
