"""The pure functions a `Call` may name: how many arguments, of which types."""

from __future__ import annotations

import msgspec


class MathFunction(msgspec.Struct, frozen=True):
    """`arity` arguments of one dtype, which is the result's; `floats_only` refuses integers."""

    name: str
    arity: int
    floats_only: bool = True


FUNCTIONS: dict[str, MathFunction] = {
    found.name: found
    for found in (
        MathFunction("exp", 1),
        MathFunction("exp2", 1),
        MathFunction("expm1", 1),
        MathFunction("log", 1),
        MathFunction("log2", 1),
        MathFunction("log10", 1),
        MathFunction("log1p", 1),
        MathFunction("sqrt", 1),
        MathFunction("rsqrt", 1),
        MathFunction("tanh", 1),
        MathFunction("sigmoid", 1),
        MathFunction("erf", 1),
        MathFunction("sin", 1),
        MathFunction("cos", 1),
        MathFunction("floor", 1),
        MathFunction("ceil", 1),
        MathFunction("trunc", 1),
        MathFunction("round", 1),
        MathFunction("pow", 2),
        MathFunction("fma", 3),
        MathFunction("abs", 1, floats_only=False),
    )
}
