"""Random expressions, each as text and as a function of coordinates and memory, in NumPy alone.

Values stay small integers (and halves of them), so that every order of a sum gives the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

import numpy as np

Env = dict[str, np.ndarray]
"""Coordinates by variable, and places in storage: shaped (E, 1, 1), (1, K, 1) or (1, 1, L)."""
FLOATS, INTS = ("float32", "float64"), ("int32", "int64")
COMPARISONS = (
    ("<", np.less), ("<=", np.less_equal), (">", np.greater), (">=", np.greater_equal),
    ("==", np.equal), ("!=", np.not_equal),
)  # fmt: skip


@dataclass
class Value:
    """An expression as text and as a function; no result is larger than `bound`."""

    text: str
    at: Callable[[Env, Env], np.ndarray]
    bound: float


class Expressions:
    """Draws expressions of one dtype over given leaves; `scope` are the variables that are bound."""

    def __init__(self, rng: Random, dtype: str, *, special: bool) -> None:
        self.rng, self.dtype, self.special = rng, dtype, special
        self.wide = np.float64 if dtype in FLOATS else np.int64

    def constant(self) -> Value:
        number = self.rng.randint(-2, 3)
        return Value(f"T.{self.dtype}({number})", lambda env, memory: self.wide(number), 4)

    def coordinate(self, scope: set[str]) -> Value:
        name = self.rng.choice(sorted(scope))
        return Value(name, lambda env, memory: env[name].astype(np.int64), 20)

    def condition(self, scope: set[str], leaves: list[Value], depth: int) -> Value:
        rng = self.rng
        if rng.random() < 0.25 and depth:
            left = self.condition(scope, leaves, depth - 1)
            if rng.random() < 0.3:
                return Value(f"(not {left.text})", lambda e, m: ~left.at(e, m), 1)
            right = self.condition(scope, leaves, depth - 1)
            word, function = rng.choice((("and", np.logical_and), ("or", np.logical_or)))
            return Value(
                f"({left.text} {word} {right.text})",
                lambda e, m: function(left.at(e, m), right.at(e, m)),
                1,
            )
        op, compare = rng.choice(COMPARISONS)
        if rng.random() < 0.5 and scope:
            left, right = self.coordinate(scope), self.coordinate(scope)
            if rng.random() < 0.5:
                bound = rng.randint(0, 6)
                right = Value(f"T.int64({bound})", lambda e, m: np.int64(bound), 20)
            if rng.random() < 0.3:
                whole, by = left, rng.choice((2, 3))
                left = Value(f"{whole.text} % {by}", lambda e, m: whole.at(e, m) % by, 20)
        else:
            left, right = self.value(scope, leaves, depth), self.value(scope, leaves, 0)
        return Value(
            f"({left.text} {op} {right.text})",
            lambda e, m: np.asarray(compare(left.at(e, m), right.at(e, m))),
            1,
        )

    def value(self, scope: set[str], leaves: list[Value], depth: int) -> Value:
        rng = self.rng
        if depth == 0 or rng.random() < 0.15:
            return rng.choice(leaves)
        kinds = ["mul", "mul", "mul", "add", "sub", "min", "max", "select", "lazy", "neg", "abs"]
        kinds += ["coordinate"] if scope else []
        if self.dtype in INTS:
            kinds += ["floordiv", "floormod", "bitand", "shl", "narrow"]
        else:
            kinds += ["half", "floor", "fma", "wider"] + ([] if self.special else ["truncate"])
        return getattr(self, f"of_{rng.choice(kinds)}")(
            lambda: self.value(scope, leaves, depth - 1), scope, leaves
        )

    def binary(self, op: str, function, left: Value, right: Value, bound: float) -> Value:
        return Value(
            op.format(left.text, right.text),
            lambda e, m: function(left.at(e, m), right.at(e, m)),
            bound,
        )

    def unary(self, op: str, function, inner: Value, bound: float) -> Value:
        return Value(op.format(inner.text), lambda e, m: function(inner.at(e, m)), bound)

    def of_mul(self, draw, scope, leaves):
        left, right = draw(), draw()
        if left.bound * right.bound > 512:
            return self.of_add(lambda: left, scope, leaves)
        return self.binary("({} * {})", np.multiply, left, right, left.bound * right.bound)

    def of_add(self, draw, scope, leaves):
        left, right = draw(), draw()
        return self.binary("({} + {})", np.add, left, right, left.bound + right.bound)

    def of_sub(self, draw, scope, leaves):
        left, right = draw(), draw()
        return self.binary("({} - {})", np.subtract, left, right, left.bound + right.bound)

    def of_min(self, draw, scope, leaves):
        left, right = draw(), draw()
        return self.binary("T.min({}, {})", np.minimum, left, right, max(left.bound, right.bound))

    def of_max(self, draw, scope, leaves):
        left, right = draw(), draw()
        return self.binary("T.max({}, {})", np.maximum, left, right, max(left.bound, right.bound))

    def of_select(self, draw, scope, leaves, word="T.Select"):
        condition = self.condition(scope, leaves, 1)
        left, right = draw(), draw()
        return Value(
            f"{word}({condition.text}, {left.text}, {right.text})",
            lambda e, m: np.where(condition.at(e, m), left.at(e, m), right.at(e, m)),
            max(left.bound, right.bound),
        )

    def of_lazy(self, draw, scope, leaves):
        return self.of_select(draw, scope, leaves, "T.if_then_else")

    def of_neg(self, draw, scope, leaves):
        inner = draw()
        return self.unary("(-{})", np.negative, inner, inner.bound)

    def of_abs(self, draw, scope, leaves):
        inner = draw()
        return self.unary("T.abs({})", np.abs, inner, inner.bound)

    def of_coordinate(self, draw, scope, leaves):
        found = self.coordinate(scope)
        return self.unary(f"T.{self.dtype}({{}})", lambda x: x.astype(self.wide), found, 20)

    def of_floordiv(self, draw, scope, leaves):
        inner, by = draw(), self.rng.choice((2, 3, -2))
        return self.unary(f"({{}} // {by})", lambda x: x // by, inner, inner.bound)

    def of_floormod(self, draw, scope, leaves):
        inner, by = draw(), self.rng.choice((2, 3, 4))
        return self.unary(f"({{}} % {by})", lambda x: x % by, inner, 4)

    def of_bitand(self, draw, scope, leaves):
        left, right = draw(), draw()
        return self.binary("({} & {})", np.bitwise_and, left, right, left.bound + right.bound)

    def of_shl(self, draw, scope, leaves):
        inner = draw()
        return self.unary("({} << 1)", lambda x: x * 2, inner, 2 * inner.bound)

    def of_narrow(self, draw, scope, leaves):
        inner = draw()
        wrap = self.rng.choice(("int8", "int16", "uint8", "int32"))
        return self.unary(
            f"T.{self.dtype}(T.{wrap}({{}}))",
            lambda x: np.asarray(x).astype(wrap).astype(np.int64),
            inner,
            max(inner.bound, 256 if wrap == "uint8" else 0),
        )

    def of_half(self, draw, scope, leaves):
        inner = self.rng.choice(leaves)
        return self.unary("({} / 2.0)", lambda x: x / 2, inner, inner.bound)

    def of_floor(self, draw, scope, leaves):
        inner = draw()
        return self.unary("T.floor({})", np.floor, inner, inner.bound + 1)

    def of_fma(self, draw, scope, leaves):
        one, two, three = (self.rng.choice(leaves) for _ in range(3))
        return Value(
            f"T.fma({one.text}, {two.text}, {three.text})",
            lambda e, m: one.at(e, m) * two.at(e, m) + three.at(e, m),
            one.bound * two.bound + three.bound,
        )

    def of_wider(self, draw, scope, leaves):
        inner = draw()
        return self.unary(f"T.{self.dtype}(T.float64({{}}))", lambda x: x, inner, inner.bound)

    def of_truncate(self, draw, scope, leaves):
        inner = draw()
        to = self.rng.choice(INTS)
        return self.unary(f"T.{self.dtype}(T.{to}({{}}))", np.trunc, inner, inner.bound)
