"""Scalable vectors: their length, and their values at every length."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer_host_runtime import scalable_vector_bits
from gossamer_llvm_sve.vector_extension import EXTENSIONS


def lengths(extension):
    """Those that are emulated, or that of this machine."""
    return (scalable_vector_bits() or 128,) if extension.is_native else extension.vector_lengths


TARGETS = [
    (f"{name}:vector_bits={bits}", bits)
    for name, extension in EXTENSIONS.items()
    for bits in lengths(extension)
]
REDUCERS = {"add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}
MULTIPLES = {"float32": 4, "float64": 4, "float16": 8, "int8": 16, "int64": 2, "uint16": 8}
"""A multiple of vscale for each dtype; vectors of float64 take two registers."""


@pytest.mark.parametrize(("target", "bits"), TARGETS)
def test_the_vectors_have_the_length_of_the_target(target, bits, flat, load):
    kernel = load(flat("Y[0] = T.vscale()", dtype="int64"), target)
    x, y = np.zeros((2, 1), np.int64)
    kernel(x, y)
    assert y.tolist() == [bits // 128]


@pytest.mark.parametrize("values", [2, 4, 16])
@pytest.mark.parametrize("dtype", MULTIPLES)
def test_a_transpose_reduce_combines_the_lanes_of_each_vector(dtype, values, flat, load):
    lanes = f"{MULTIPLES[dtype]} * T.vscale()"
    lines = []
    for at, op in enumerate(REDUCERS):
        rows = (f"X[T.ramp({u} * ({lanes}), 1, {lanes})]" for u in range(values))
        text = f'T.transpose_reduce("{op}", {", ".join(rows)})'
        lines.append(f"Y[T.ramp({at * values}, 1, {values})] = {text}")
    module = flat(*lines, dtype=dtype)
    for target, bits in TARGETS:
        shape = (values, MULTIPLES[dtype] * bits // 128)
        x = np.random.default_rng(bits).integers(1, 3, shape).astype(dtype)
        # Products of at most 16 twos, which no dtype of floats rounds.
        x[:, 4:] = 1
        y = np.zeros(x.size + 64, dtype)
        load(module, target)(np.resize(x, y.size), y, y.size)
        result = y[: len(REDUCERS) * values].reshape(len(REDUCERS), values)
        for row, ufunc in zip(result, REDUCERS.values(), strict=True):
            np.testing.assert_array_equal(row, ufunc.reduce(x, axis=1, dtype=dtype))


@pytest.mark.parametrize("target", ["llvm-sve", "llvm-rvv", "llvm-rvv:features=zvfh"])
def test_halves_are_rounded_once_with_and_without_instructions_for_them(target, flat, load):
    """The sum is in float32, also for numbers that float16 has as subnormal ones, and for infinities."""
    lanes = "8 * T.vscale()"
    run = f"T.ramp(i * ({lanes}), 1, {lanes})"
    mask = f"{run} < T.broadcast(n, {lanes})"
    added = f"X.vload([{run}], predicate={mask})"
    module = flat(
        f"for i in T.serial((n + ({lanes} - 1)) // ({lanes})):",
        f"    Y.vstore([{run}], {added} + {added} * {added}, predicate={mask})",
        dtype="float16",
    )
    rng = np.random.default_rng(0)
    x = (rng.standard_normal(999) * 2.0 ** rng.integers(-24, 14, 999)).astype(np.float16)
    y = np.zeros_like(x)
    load(module, target)(x, y, x.size)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(y, x + x * x)
