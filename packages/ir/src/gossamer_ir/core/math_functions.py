"""The pure functions that a `Call` may name, with the number and the types of their arguments."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, TypeAlias

import msgspec

from gossamer_ir.core.operations import OperandKind
from gossamer_support.items_by_name import items_by_name

InstructionSet: TypeAlias = Literal["base", "sse4.1", "fma"]


TF32_FRACTION_BITS = 10
"""The bits of the fraction to which `tf32` rounds."""


class MathFunction(msgspec.Struct, frozen=True):
    """A function of `arity` arguments of one dtype, which is also that of the result. `operands` says which
    dtypes these may be."""

    name: str
    arity: int
    operands: OperandKind = "floats"
    instruction: InstructionSet | None = None
    """The feature of x86-64 CPUs with which the function is an instruction, or a few of integers ("base": all
    have it). The base instruction set of AArch64 has all of these. Lowering computes others from simpler
    functions."""

    counts_bits: bool = False
    """True if the result is a number of bits or the position of a bit: at least 0, and at most the number of
    bits of the dtype, for all arguments. Bounds are proved from this."""


FUNCTIONS: dict[str, MathFunction] = items_by_name(
    (
        MathFunction("exp", 1),
        MathFunction("exp2", 1),
        MathFunction("expm1", 1),
        MathFunction("log", 1),
        MathFunction("log2", 1),
        MathFunction("log10", 1),
        MathFunction("log1p", 1),
        MathFunction("sqrt", 1, instruction="base"),
        MathFunction("rsqrt", 1),
        MathFunction("tanh", 1),
        MathFunction("sigmoid", 1),
        MathFunction("erf", 1),
        MathFunction("sin", 1),
        MathFunction("cos", 1),
        MathFunction("floor", 1, instruction="sse4.1"),
        MathFunction("ceil", 1, instruction="sse4.1"),
        MathFunction("trunc", 1, instruction="sse4.1"),
        MathFunction("round", 1, instruction="sse4.1"),
        MathFunction("pow", 2),
        MathFunction("fma", 3, instruction="fma"),
        MathFunction("abs", 1, "numbers", instruction="base"),
        MathFunction("tf32", 1, instruction="base"),
        MathFunction("popcount", 1, "integers", instruction="base", counts_bits=True),
        MathFunction("ctz", 1, "integers", instruction="base", counts_bits=True),
        MathFunction("find_nth_bit", 2, "integers", counts_bits=True),
    )
)

INSTRUCTIONS: frozenset[str] = frozenset(
    name for name, function in FUNCTIONS.items() if function.instruction is not None
)
"""The functions that are instructions of some CPU."""


def instructions_with(features: Collection[str]) -> frozenset[str]:
    """Return the functions that are instructions of an x86-64 CPU with these features.

    >>> sorted(instructions_with({"fma"}) - instructions_with(()))
    ['fma']
    """
    return frozenset(
        name for name in INSTRUCTIONS if FUNCTIONS[name].instruction in ("base", *features)
    )
