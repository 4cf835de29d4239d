"""The pure functions that a `Call` may name, with the number and the types of their arguments."""

from __future__ import annotations

import msgspec


class MathFunction(msgspec.Struct, frozen=True):
    """A function of `arity` arguments of one dtype, which is also that of the result; with `floats_only`,
    a floating-point one."""

    name: str
    arity: int
    floats_only: bool = True


FUNCTIONS: dict[str, MathFunction] = {
    function.name: function
    for function in (
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
