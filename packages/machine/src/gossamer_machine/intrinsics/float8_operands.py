"""Factors of float8: bytes in memory, whose values an expression of the language decodes.

Matrix instructions read the bytes themselves, so programs with these factors are matched to them. A
float8_e5m2 is the upper half of a float16. A float8_e4m3 has a smaller bias, four bits of exponent, no
infinity, and a NaN of all ones; its bits are those of a float16 that is 256 times smaller.
"""

from __future__ import annotations

from gossamer_ir.nodes import Binary, Cast, Compare, Const, Expr, Load, Reinterpret, Select
from gossamer_ir.traversal.walk import collect

FLOAT8_OPERANDS = ("float8_e4m3", "float8_e5m2")
"""The names of the operands, whose elements are stored as uint8."""


def float8_text(element: str, dtype: str) -> str:
    """Return the script of the value of an element, as float32.

    >>> float8_text("A[i]", "float8_e5m2")
    'T.float32(T.reinterpret("float16", T.uint16(A[i]) << T.uint16(8)))'
    """
    wide = f"T.uint16({element})"
    if dtype == "float8_e5m2":
        return f'T.float32(T.reinterpret("float16", {wide} << T.uint16(8)))'
    sign = f"({wide} & T.uint16(128)) << T.uint16(8)"
    magnitude = f"({wide} & T.uint16(127)) << T.uint16(7)"
    number = f'T.float32(T.reinterpret("float16", {sign} | {magnitude})) * T.float32(256.0)'
    return f'T.select({element} & T.uint8(127) == T.uint8(127), T.float32("nan"), {number})'


def float8_value(element: Expr, dtype: str) -> Expr:
    """Return the value of an element, as float32."""
    wide = Cast("uint16", element)

    def shift(bits: Expr, places: int) -> Expr:
        return Binary("shl", bits, Const("uint16", str(places)))

    def mask(bits: int) -> Expr:
        return Binary("bitand", wide, Const("uint16", str(bits)))

    if dtype == "float8_e5m2":
        return Cast("float32", Reinterpret("float16", shift(wide, 8)))
    bits = Binary("bitor", shift(mask(128), 8), shift(mask(127), 7))
    number = Cast("float32", Reinterpret("float16", bits))
    all_ones = Const("uint8", "127")
    return Select(
        Compare("eq", Binary("bitand", element, all_ones), all_ones),
        Const("float32", "nan"),
        Binary("mul", number, Const("float32", "256.0")),
    )


# Other expressions: nothing is decoded by them.
def float8_factor(value: Expr) -> tuple[Load, str] | None:
    """Return the element that an expression decodes, and its dtype; None for any other expression.

    >>> from gossamer_ir.core.build import index_var
    >>> load = Load("A", (index_var("i"),), "uint8")
    >>> float8_factor(float8_value(load, "float8_e4m3")) == (load, "float8_e4m3"), float8_factor(load)
    (True, None)
    """
    if not isinstance(value, (Cast, Select)):
        return None
    loads = {load for load in collect(Load, value) if load.dtype == "uint8"}
    for load in loads:
        for dtype in FLOAT8_OPERANDS:
            if value == float8_value(load, dtype):
                return load, dtype
    return None
