"""Random expressions with bounds on their magnitude and exactness.

Values that are compared or converted to integers are exact, so that a rounding error never decides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random

import numpy as np

from gossamer_ir.core.constants import constant
from gossamer_ir.core.dtypes import DType
from gossamer_ir.core.math_functions import FUNCTIONS
from gossamer_ir.nodes import (
    Binary,
    Call,
    Cast,
    Compare,
    Expr,
    IfThenElse,
    Reinterpret,
    Select,
    Unary,
)
from tests.fuzzing.oracle.arithmetic import FLOATS, INTEGERS, SIGNIFICANT
from tests.fuzzing.programs.generators import beside

MAX_MAGNITUDE = 512.0
"""The maximum magnitude of floats that are multiplied."""
CONVERSIONS = (*FLOATS, *INTEGERS, "bool")
BITS = {8: "int8", 16: "int16", 32: "int32", 64: "int64"}


@dataclass(frozen=True)
class Term:
    """An expression with bounds: the magnitude of its values is at most `bound`, all are multiples of two to
    the minus `fraction`, and they differ from the oracle by at most `error`."""

    expr: Expr
    dtype: str
    bound: float
    fraction: int = 0
    error: float = 0.0

    @property
    def is_exact(self) -> bool:
        return self.error == 0


def bits_of(dtype: str) -> int:
    return 8 if dtype == "bool" else DType.parse(dtype).bits


def largest(dtype: str) -> float:
    """The largest absolute value of an integer dtype."""
    limits = np.iinfo(dtype)
    return float(max(-int(limits.min), int(limits.max)))


def term(expr: Expr, dtype: str, bound: float, *, fraction: int = 0, error: float = 0.0) -> Term:
    """A result in its dtype: integers wrap, floats round."""
    if dtype in INTEGERS:
        limits = np.iinfo(dtype)
        wraps = bound > limits.max or limits.min == 0
        return Term(expr, dtype, largest(dtype) if wraps else bound)
    if dtype in FLOATS and (error or bound * 2.0**fraction > 2.0 ** SIGNIFICANT[dtype]):
        error += 2.0 ** (2 - SIGNIFICANT[dtype]) * bound
    return Term(expr, dtype, bound, fraction, error)


BIT_FUNCTIONS = 0.3
"""The share of functions of bits among terms that would combine bits."""


class Terms:
    """Draws terms over leaves: `leaf` draws one of a dtype, `coordinate` an int64."""

    def __init__(
        self,
        rng: Random,
        *,
        leaf: Callable[[str], Term],
        coordinate: Callable[[], Term],
        dtypes: tuple[str, ...],
    ) -> None:
        self.rng, self.leaf, self.coordinate, self.dtypes = rng, leaf, coordinate, dtypes
        self._bit_functions = beside(rng)

    def number(self, value: float, dtype: str) -> Term:
        return Term(constant(value, dtype), dtype, abs(float(value)), 0)

    def exact(self, dtype: str, depth: int) -> Term:
        """A term without rounding errors."""
        for _ in range(3):
            term = self.value(dtype, depth)
            if term.is_exact:
                return term
        term = self.leaf(dtype)
        return term if term.is_exact else self.number(self.rng.randint(0, 3), dtype)

    def value(self, dtype: str, depth: int) -> Term:
        """Any term of a dtype."""
        if depth <= 0 or self.rng.random() < 0.12:
            return self.leaf(dtype)
        if dtype == "bool":
            return self.condition(depth)
        kinds = (*_COMMON, *(_FLOAT if dtype in FLOATS else _INTEGER))
        kind = self.rng.choice(kinds)
        if kind == "bits" and self._bit_functions.random() < BIT_FUNCTIONS:
            kind = "bit_function"
        return getattr(self, f"draw_{kind}")(dtype, depth - 1)

    def condition(self, depth: int) -> Term:
        """A bool: a comparison, or several."""
        rng, kind = self.rng, self.rng.random()
        if depth > 0 and kind < 0.3:
            left, right = self.condition(depth - 1), self.condition(depth - 1)
            return Term(Binary(rng.choice(("and", "or")), left.expr, right.expr), "bool", 1)
        if depth > 0 and kind < 0.42:
            return Term(Unary("not", self.condition(depth - 1).expr), "bool", 1)
        if kind < 0.5:
            return Term(
                Cast("bool", self.exact(rng.choice(self.dtypes), depth - 1).expr), "bool", 1
            )
        op = rng.choice(("eq", "ne", "lt", "le", "gt", "ge"))
        if kind < 0.75:
            left = self.coordinate()
            right = (
                self.number(rng.randint(0, 4), "int64") if rng.random() < 0.5 else self.coordinate()
            )
        else:
            dtype = rng.choice(self.dtypes)
            left, right = self.exact(dtype, depth - 1), self.exact(dtype, 0)
        return Term(Compare(op, left.expr, right.expr), "bool", 1)

    # --- any number

    def _pair(self, dtype: str, depth: int) -> tuple[Term, Term]:
        return self.value(dtype, depth), self.value(dtype, self.rng.randint(0, max(depth, 0)))

    def draw_add(self, dtype: str, depth: int) -> Term:
        left, right = self._pair(dtype, depth)
        op = self.rng.choice(("add", "sub"))
        return term(
            Binary(op, left.expr, right.expr),
            dtype,
            left.bound + right.bound,
            fraction=max(left.fraction, right.fraction),
            error=left.error + right.error,
        )

    def draw_mul(self, dtype: str, depth: int) -> Term:
        left, right = self._pair(dtype, depth)
        if dtype in FLOATS and left.bound * right.bound > MAX_MAGNITUDE:
            return self._least((left, right), dtype)
        return term(
            Binary("mul", left.expr, right.expr),
            dtype,
            left.bound * right.bound,
            fraction=left.fraction + right.fraction,
            error=left.error * right.bound + right.error * left.bound + left.error * right.error,
        )

    def draw_least(self, dtype: str, depth: int) -> Term:
        return self._least(self._pair(dtype, depth), dtype)

    def _least(self, sides: tuple[Term, Term], dtype: str) -> Term:
        op = self.rng.choice(("min", "max"))
        return self._either(Binary(op, sides[0].expr, sides[1].expr), *sides)

    def _either(self, expr: Expr, left: Term, right: Term) -> Term:
        """One of two values."""
        return Term(
            expr,
            left.dtype,
            max(left.bound, right.bound),
            max(left.fraction, right.fraction),
            max(left.error, right.error),
        )

    def draw_select(self, dtype: str, depth: int) -> Term:
        left, right = self._pair(dtype, depth)
        node = self.rng.choice((Select, IfThenElse))
        return self._either(node(self.condition(1).expr, left.expr, right.expr), left, right)

    def draw_neg(self, dtype: str, depth: int) -> Term:
        inner = self.value(dtype, depth)
        return replace(term(Unary("neg", inner.expr), dtype, inner.bound),
                       fraction=inner.fraction, error=inner.error)  # fmt: skip

    def draw_abs(self, dtype: str, depth: int) -> Term:
        inner = self.value(dtype, depth)
        return replace(term(Call("abs", (inner.expr,), dtype), dtype, inner.bound),
                       fraction=inner.fraction, error=inner.error)  # fmt: skip

    def draw_coordinate(self, dtype: str, depth: int) -> Term:
        return self.cast(self.coordinate(), dtype)

    def draw_cast(self, dtype: str, depth: int) -> Term:
        """A cast through another dtype."""
        source = self.rng.choice((*self.dtypes, *CONVERSIONS))
        if source == dtype:
            return self.leaf(dtype)
        inner = self.exact(source, depth) if source in self.dtypes else self._through(source, depth)
        return self.cast(inner, dtype)

    def _through(self, dtype: str, depth: int) -> Term:
        """A value of the program, converted to another dtype."""
        return self.cast(self.exact(self.rng.choice(self.dtypes), depth), dtype)

    def cast(self, inner: Term, dtype: str) -> Term:
        """A cast whose result has the bounds that arithmetic needs."""
        if inner.dtype == dtype:
            return inner
        if inner.dtype in INTEGERS and dtype in FLOATS and inner.bound > MAX_MAGNITUDE / 2:
            divisor = constant(7, inner.dtype)
            inner = Term(Binary("floormod", inner.expr, divisor), inner.dtype, 7)
        cast = Cast(dtype, inner.expr)
        if dtype == "bool":
            return Term(cast, dtype, 1)
        if inner.dtype in FLOATS and dtype in INTEGERS:
            return Term(cast, dtype, largest(dtype))
        fraction = inner.fraction if dtype in FLOATS else 0
        return term(cast, dtype, max(inner.bound, 1), fraction=fraction, error=inner.error)

    def draw_division(self, dtype: str, depth: int) -> Term:
        """A quotient by a constant, and the remainder."""
        op = self.rng.choice(("floordiv", "floormod"))
        by = self.rng.choice((2, 3, 5, *(() if dtype.startswith("u") else (-2, -3))))
        inner = self.exact(dtype, depth)
        scaled = Binary(op, inner.expr, constant(by, dtype))
        if op == "floormod":
            return term(scaled, dtype, abs(by), fraction=inner.fraction)
        return term(scaled, dtype, inner.bound + 1)

    def draw_reinterpret(self, dtype: str, depth: int) -> Term:
        """The bits of a number where they are specified, or a round trip through another dtype."""
        width = bits_of(dtype)
        if dtype in FLOATS:
            inner = self.exact(dtype, depth)
            return replace(inner, expr=Reinterpret(dtype, Reinterpret(BITS[width], inner.expr)))
        other = BITS[width] if dtype.startswith("u") else f"u{dtype}"
        inner = self.cast(self.exact(dtype, depth), other)
        return Term(Reinterpret(dtype, inner.expr), dtype, largest(dtype))

    # --- floats

    def draw_quotient(self, dtype: str, depth: int) -> Term:
        inner, by = self.value(dtype, depth), self.rng.choice((2, 4, 3, -2))
        quotient, bound = Binary("div", inner.expr, constant(by, dtype)), inner.bound / abs(by)
        if by != 3:
            shift = abs(by).bit_length() - 1
            return term(quotient, dtype, bound, fraction=inner.fraction + shift, error=inner.error)
        error = inner.error + 2.0 ** (1 - SIGNIFICANT[dtype]) * max(bound, 1)
        return term(quotient, dtype, bound, error=error)

    def draw_whole(self, dtype: str, depth: int) -> Term:
        inner = self.exact(dtype, depth)
        name = self.rng.choice(("floor", "ceil", "trunc", "round"))
        return term(Call(name, (inner.expr,), dtype), dtype, inner.bound + 1)

    def draw_fma(self, dtype: str, depth: int) -> Term:
        one, two, three = (self.value(dtype, 0) for _ in range(3))
        if one.bound * two.bound > MAX_MAGNITUDE:
            return self._least((one, two), dtype)
        return term(
            Call("fma", (one.expr, two.expr, three.expr), dtype),
            dtype,
            one.bound * two.bound + three.bound,
            fraction=max(one.fraction + two.fraction, three.fraction),
            error=one.error * two.bound + two.error * one.bound + three.error,
        )

    def draw_function(self, dtype: str, depth: int) -> Term:
        """A math function of an exact number."""
        name = self.rng.choice(tuple(_FUNCTIONS))
        inner = self.exact(dtype, depth)
        if name in _OF_SMALL and inner.bound > 8:
            inner = Term(Binary("max", Binary("min", inner.expr, constant(8, dtype)),
                                constant(-8, dtype)), dtype, 8, inner.fraction)  # fmt: skip
        if name in _OF_POSITIVE:
            above = Binary("add", Call("abs", (inner.expr,), dtype), constant(1, dtype))
            inner = term(above, dtype, inner.bound + 1, fraction=inner.fraction)
            if not inner.is_exact:
                inner = self.number(3, dtype)
        args = (inner.expr,)
        if name == "pow":
            args += (constant(self.rng.choice((0.5, 2, 3)), dtype),)
        bound = max(_FUNCTIONS[name](inner.bound), 1.0)
        error = 2.0 ** (4 - SIGNIFICANT[dtype]) * bound
        return term(Call(name, args, dtype), dtype, bound, error=error)

    # --- integers

    def draw_bits(self, dtype: str, depth: int) -> Term:
        left, right = self._pair(dtype, depth)
        op = self.rng.choice(("bitand", "bitor", "bitxor"))
        if op == "bitand" and self.rng.random() < 0.5:
            return Term(Binary(op, left.expr, constant(7, dtype)), dtype, 7)
        return Term(Binary(op, left.expr, right.expr), dtype, largest(dtype))

    def draw_bitnot(self, dtype: str, depth: int) -> Term:
        return Term(Unary("bitnot", self.value(dtype, depth).expr), dtype, largest(dtype))

    def draw_shift(self, dtype: str, depth: int) -> Term:
        """A shift by a few bits, or by any number."""
        inner = self.value(dtype, depth)
        by: Expr = constant(self.rng.choice((0, 1, 2, 3, 7, 8, 31, 64)), dtype)
        if self.rng.random() < 0.3:
            by = self.value(dtype, 0).expr
        return Term(Binary(self.rng.choice(("shl", "shr")), inner.expr, by), dtype, largest(dtype))

    def draw_bit_function(self, dtype: str, depth: int) -> Term:
        """A number of bits, or the position of one."""
        function = self.rng.choice(_BIT_FUNCTIONS)
        args = [self.value(dtype, depth).expr]
        for _ in range(1, function.arity):
            few = self.number(self.rng.randint(0, 4), dtype)
            args.append(self.rng.choice((few, self.value(dtype, 0))).expr)
        return Term(Call(function.name, tuple(args), dtype), dtype, bits_of(dtype))

    def draw_any_division(self, dtype: str, depth: int) -> Term:
        """A division by any value, also by 0."""
        left, right = self._pair(dtype, depth)
        op = self.rng.choice(("floordiv", "floormod"))
        return Term(Binary(op, left.expr, right.expr), dtype, largest(dtype))


_BIT_FUNCTIONS = tuple(function for function in FUNCTIONS.values() if function.counts_bits)
_COMMON = (
    *("add", "mul") * 3, "least", "select", "select", "neg", "abs", "coordinate", "cast", "cast",
    "division", "reinterpret",
)  # fmt: skip
_FLOAT = ("quotient", "whole", "fma", *("function",) * 7)
_INTEGER = ("bits", "bits", "bitnot", "shift", "shift", "any_division")
_FUNCTIONS: dict[str, Callable[[float], float]] = {
    "exp": lambda most: np.exp(most), "exp2": lambda most: 2**most, "expm1": lambda most: np.exp(most),
    "log": lambda most: most + 4, "log2": lambda most: most + 4, "log10": lambda most: most + 4,
    "log1p": lambda most: most + 4, "sqrt": lambda most: most, "rsqrt": lambda most: 1.0,
    "tanh": lambda most: 1.0, "sigmoid": lambda most: 1.0, "erf": lambda most: 1.0,
    "sin": lambda most: 1.0, "cos": lambda most: 1.0, "pow": lambda most: most**3,
}  # fmt: skip
"""The magnitude of a result, given that of the largest argument."""
_OF_SMALL = ("exp", "exp2", "expm1", "pow")
_OF_POSITIVE = ("rsqrt", "pow")
