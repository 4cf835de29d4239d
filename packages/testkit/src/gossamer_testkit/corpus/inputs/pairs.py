"""Pairs of special values, at which machines may differ, for elementwise operations."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gossamer_formats.internal_api import value_array_dtype
from gossamer_support.arrays import Array
from gossamer_testkit.corpus.case import Case, Options

INF, NAN = float("inf"), float("nan")
FLOAT_VALUES = (0.0, -0.0, 1.5, -2.25, INF, -INF, NAN, 3e38, 1e-40)
WHOLE = (0.0, -0.0, 0.5, 1.0, 1.5, 2.75, 99.25, 126.999)
"""Floats whose integral part fits every integer type."""

BESIDE_HALVES = (
    257, 259, -257, -259, 2049, 2051, -2051, 65519, 65520, 257 * 2**12 + 1, 257 * 2**40 + 1,
)  # fmt: skip
"""Integers halfway between two numbers of bfloat16 or float16, and some that are halfway only once they have
been rounded to float32, which must not happen."""

PADDED_LENGTH = 64
"""The length of a case is a multiple of this, and therefore of every number of lanes."""


def pairs(options: Options) -> Iterator[Case]:
    """Yield cases in which X and Z are all pairs of special values, one vector of them, or empty.
    OUT has a row per operation."""
    dtype, rows = options["dtype"], len(options["rows"])
    special = special_values(dtype)
    grid = np.stack(np.meshgrid(special, special)).reshape(2, -1)
    # Whole vectors only: a program over vectors takes no rest.
    everything = np.pad(grid, ((0, 0), (0, -grid.shape[1] % PADDED_LENGTH)), mode="edge")
    for name, columns in (("all pairs", everything), ("1 vector", everything[:, :PADDED_LENGTH])):
        yield _pair_case(name, columns, rows=rows, output=options["output"])
    yield _pair_case("0 elements", everything[:, :0], rows=rows, output=options["output"])


def special_values(dtype: str) -> Array:
    """Return zero, small numbers and the limits of the range; for floats also infinity, NaN and a
    denormal."""
    if dtype.startswith(("float", "bfloat")):
        kept = "float32" if dtype == "bfloat16" else dtype
        with np.errstate(over="ignore", under="ignore"):
            return np.array(FLOAT_VALUES, np.float64).astype(kept)
    limits = np.iinfo(dtype)
    small = (-7, -3, -2, -1, 0, 1, 2, 3, 7) if limits.min < 0 else (0, 1, 2, 3, 7, 8)
    return np.array((limits.min, limits.min + 1, *small, limits.max - 1, limits.max), dtype)


def truths(options: Options) -> Iterator[Case]:
    """Yield cases in which X and Z are all pairs of bools, or empty."""
    grid = np.array([[0, 0, 1, 1] * 16, [0, 1, 0, 1] * 16], bool)
    for name, columns in (("all pairs", grid), ("0 elements", grid[:, :0])):
        yield _pair_case(name, columns, rows=len(options["rows"]), output="bool")


def cast_values(options: Options) -> Iterator[Case]:
    """Yield cases in which X has values of the source dtype for which the conversion to every target is
    defined; there is one output per target."""
    source, targets = options["source"], options["targets"]
    values = np.tile(_as_stored(_convertible(source, targets), source), 64)
    for name, x in (("all values", values[: 64 * 2]), ("0 elements", values[:0])):
        outputs = {f"y_{target}": np.zeros(x.size, value_array_dtype(target)) for target in targets}
        yield Case(name, {"x": x, **outputs, "n": x.size})


def _convertible(source: str, targets: list[str]) -> Array:
    """Return the values to convert. Floats that become integers must fit; other conversions wrap, round or
    overflow. bfloat16 is compared bit by bit, and a NaN has several patterns, so none is converted to it."""
    if source == "bool":
        return np.array([False, True])
    if "bfloat16" in targets and source.startswith("float"):
        values = np.concatenate([special_values(source), _near_bfloat16(source)])
        kept: Array = values[~np.isnan(values)]
        return kept
    if "bfloat16" in targets and source.startswith(("int", "uint")):
        limits = np.iinfo(source)
        beside = [value for value in BESIDE_HALVES if limits.min <= value <= limits.max]
        return np.concatenate([special_values(source), np.array(beside, source)])
    is_float = source.startswith(("float", "bfloat"))
    if not is_float or all(target.startswith(("float", "bfloat")) for target in targets):
        return special_values(source)
    numbers = [target for target in targets if target != "bool"]
    # -0.5 becomes 0, which unsigned integers have, too.
    is_signed = all(target.startswith(("int", "float")) for target in numbers)
    negative = (-0.5, -1.5, -99.25) if is_signed else (-0.5,)
    return np.array((*WHOLE, *negative), "float32" if source == "bfloat16" else source)


def _near_bfloat16(dtype: str) -> Array:
    """Return numbers halfway between two of bfloat16, and beside these: ties go to the even one."""
    steps = np.array([0, 1, 2, 3, 4, 5, 6, 7]) * 2.0**-9
    beside = np.array([0, 2.0**-10, -(2.0**-10)])
    values: Array = np.add.outer(1 + steps, beside).reshape(-1).astype(dtype)
    return values


def _as_stored(values: Array, dtype: str) -> Array:
    """Return values as they are stored: for bfloat16 the upper half of float32, which rounds toward zero."""
    if dtype != "bfloat16":
        return values
    return (values.astype(np.float32).view(np.uint32) >> np.uint32(16)).astype(np.uint16)


def _pair_case(name: str, columns: Array, *, rows: int, output: str) -> Case:
    x, z = (np.ascontiguousarray(column) for column in columns)
    return Case(name, {"x": x, "z": z, "out": np.zeros((rows, x.size), output), "n": x.size})
