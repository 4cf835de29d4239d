"""Oracles of elementwise programs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gossamer_support.arrays import Array
from gossamer_testkit.corpus.case import Expected, Options, Values


def _bits(values: Array) -> Array:
    """Return the bits of integers along a new last axis, the lowest first."""
    places = np.arange(8 * values.itemsize, dtype=values.dtype)
    bits: Array = (values[..., np.newaxis] >> places) & values.dtype.type(1)
    return bits


def _tf32(values: Array) -> Array:
    """Return floats with 10 bits of fraction, halves rounded away from zero. Subnormal numbers have those of
    the least normal number."""
    wide = values.astype(np.float64)
    least = np.maximum(np.frexp(wide)[1], np.finfo(values.dtype).minexp + 1) - 11
    size = np.ldexp(np.floor(np.ldexp(np.abs(wide), -least) + 0.5), least)
    rounded = np.copysign(size, wide).astype(values.dtype)
    return np.where(np.isfinite(values), rounded, values)


ROWS: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "floordiv": lambda x, z: x // (z | x.dtype.type(1)),
    "floormod": lambda x, z: x % (z | x.dtype.type(1)),
    "min": np.minimum,
    "max": np.maximum,
    "and": np.logical_and,
    "or": np.logical_or,
    "bitand": np.bitwise_and,
    "bitor": np.bitwise_or,
    "bitxor": np.bitwise_xor,
    "shl": lambda x, z: np.left_shift(x, z % x.dtype.type(x.itemsize * 8 - 1)),
    "shr": lambda x, z: np.right_shift(x, z % x.dtype.type(x.itemsize * 8 - 1)),
    "neg": lambda x, z: np.negative(x),
    "not": lambda x, z: np.logical_not(x),
    "bitnot": lambda x, z: np.invert(x),
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "select": lambda x, z: np.where(x < z, x, z),
    "if_then_else": lambda x, z: np.where(x < z, z, x),
    "abs": lambda x, z: np.abs(x),
    "popcount": lambda x, z: _bits(x).sum(axis=-1),
    "ctz": lambda x, z: np.where(x == 0, 8 * x.itemsize, _bits(x).argmax(axis=-1)),
    "sqrt": lambda x, z: np.sqrt(x),
    "floor": lambda x, z: np.floor(x),
    "ceil": lambda x, z: np.ceil(x),
    "trunc": lambda x, z: np.trunc(x),
    "tf32": lambda x, z: _tf32(x),
}
"""The operations of elementwise programs, one per row of the output. Divisors are made odd, so that none
is zero. Shift counts are taken modulo one less than the number of bits, so that they are valid."""


def elementwise(values: Values, options: Options) -> dict[str, Expected]:
    """OUT[r] is the operation `rows[r]` applied to X and Z."""
    x, z = values["x"], values["z"]
    out = np.zeros_like(values["out"])
    with np.errstate(all="ignore"):
        for number, name in enumerate(options["rows"]):
            out[number] = x.view(out.dtype) if name == "reinterpret" else ROWS[name](x, z)
    return {"out": Expected(out)}


def casts(values: Values, options: Options) -> dict[str, Expected]:
    """Return one output for each target dtype, with X converted to it."""
    x = values["x"]
    if options["source"] == "bfloat16":
        x = (x.astype(np.uint32) << np.uint32(16)).view(np.float32)
    with np.errstate(all="ignore"):
        return {f"y_{target}": Expected(_convert(x, target)) for target in options["targets"]}


def _convert(x: Array, target: str) -> Array:
    if x.dtype.kind == "f" and target.startswith("uint"):
        # NumPy's conversion of -0.5 to an unsigned type depends on the machine.
        return np.trunc(x).astype(np.int64).astype(target)
    return _as_bfloat16(x) if target == "bfloat16" else x.astype(target)


def _as_bfloat16(x: Array) -> Array:
    """Return the patterns of the nearest numbers of bfloat16: 8 significant bits, the least exponent -133."""
    wide = x.astype(np.float64)
    least = np.maximum(np.frexp(wide)[1] - 8, -133)
    nearest = np.ldexp(np.rint(np.ldexp(wide, -least)), least).astype(np.float32)
    bits: Array = (nearest.view(np.uint32) >> np.uint32(16)).astype(np.uint16)
    return bits
