"""Math functions of scalable vectors, emulated at every vector length: their errors are those that are stated
for other vectors, and masked lanes change nothing.
"""

from __future__ import annotations

import numpy as np
import pytest

from gossamer_ir.core.dtypes import vscale_factor
from gossamer_ir.core.math_functions import FUNCTIONS as ALL
from gossamer_ir.nodes import Module
from gossamer_ir.script import parse_module
from gossamer_schedule import ScheduleBuilder
from tests.fuzzing.execution.compilers import COMPILERS
from tests.integration.math_oracle import EXACT, FUNCTIONS, HAS_LONG_DOUBLE, LONG, errors, numbers

pytestmark = [
    pytest.mark.unserialized,
    pytest.mark.skipif(not HAS_LONG_DOUBLE, reason="long double is not more precise than float64"),
]

POW_ERRORS = {"float16": 0.51, "float32": 0.51, "float64": 1.2}
OF_INTEGERS = {
    "abs": np.abs,
    "popcount": lambda x: np.bitwise_count(unsigned(x)).astype(x.dtype),
    "ctz": lambda x: (np.bitwise_count((unsigned(x) & (~unsigned(x) + 1)) - 1)).astype(x.dtype),
}
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
BLOCK = """
    for i{row} in T.serial(n):
        with T.block("block{row}"):
            vi = T.axis.spatial(n, i{row})
            Y[{row}, vi] = {value}
"""


def functions_of(values: list[str], dtype: str) -> Module:
    """A program in which each row of Y is an expression of X and Z, in native lanes."""
    blocks = (BLOCK.format(row=row, value=value) for row, value in enumerate(values))
    builder = ScheduleBuilder(
        parse_module(f"""
@T.prim_func
def apply(x: T.handle, z: T.handle, y: T.handle, n: T.int64) -> None:
    T.func_attr({{"sparse_tir_level": 0}})
    X = T.match_buffer(x, (n,), "{dtype}")
    Z = T.match_buffer(z, (n,), "{dtype}")
    Y = T.match_buffer(y, ({len(values)}, n), "{dtype}")
{"".join(blocks)}""")
    )
    for row in range(len(values)):
        builder.vectorize(f"i{row}", lanes="native")
    return builder.module


def sizes(dtype: str, bits: int) -> tuple[int, ...]:
    """Sizes around one vector."""
    lanes = vscale_factor(dtype) * bits // 128
    return (0, 1, lanes - 1, lanes, lanes + 1, 37, 115)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_errors_are_as_small_as_stated_at_every_vector_length(dtype, emulated_backend):
    names = [*FUNCTIONS, *EXACT]
    module = functions_of([*(f"T.{name}(X[vi])" for name in names), "T.pow(X[vi], Z[vi])"], dtype)
    compiler = COMPILERS[emulated_backend]
    *_, flat = compiler.stages(module)
    every = numbers(dtype, count=500)
    powers = np.random.default_rng(6).normal(size=every.size).astype(dtype)
    for bits, kernel in compiler.kernels_by_bits(flat):
        for size in (*sizes(dtype, bits), every.size):
            x, z = every[every.size - size :], powers[:size]
            result = np.full((len(names) + 1, size), 7, dtype)
            kernel(x=x.copy(), z=z.copy(), y=result, n=size)
            for name, row in zip(names, result, strict=False):
                require_near(name, x, row, dtype)
            with np.errstate(all="ignore"):
                exact = np.power(np.abs(x).astype(LONG), z.astype(LONG))
            positive = x > 0
            off = errors(result[-1], exact)[positive]
            assert not off.size or off.max() <= POW_ERRORS[dtype]


def require_near(name: str, x: np.ndarray, result: np.ndarray, dtype: str) -> None:
    """Require that the error of a function of x is at most the stated one."""
    with np.errstate(all="ignore"):
        if name in EXACT:
            np.testing.assert_array_equal(result, EXACT[name](x))
            return
        exact_function, narrow, wide = FUNCTIONS[name]
        off = errors(result, exact_function(x.astype(LONG)))
    worst = int(np.argmax(off)) if off.size else None
    # Half precision is computed in float32, and rounded.
    most = {"float16": 0.51, "float32": narrow, "float64": wide}[dtype]
    assert worst is None or off[worst] <= most, (name, x[worst], result[worst])


@pytest.mark.parametrize("dtype", INTEGERS)
def test_functions_of_integers_are_exact_at_every_vector_length(dtype, emulated_backend):
    names = [name for name in OF_INTEGERS if name != "abs" or dtype.startswith("int")]
    compiler = COMPILERS[emulated_backend]
    *_, flat = compiler.stages(functions_of([f"T.{name}(X[vi])" for name in names], dtype))
    info = np.iinfo(dtype)
    for bits, kernel in compiler.kernels_by_bits(flat):
        for size in sizes(dtype, bits):
            x = np.random.default_rng(size).integers(info.min, info.max, size, dtype, endpoint=True)
            x[: size // 4] = 0
            result = np.full((len(names), size), 7, dtype)
            kernel(x=x, z=x, y=result, n=size)
            expected = [OF_INTEGERS[name](x) for name in names]
            np.testing.assert_array_equal(result, np.array(expected).reshape(result.shape))


def unsigned(x: np.ndarray) -> np.ndarray:
    return x.view(f"u{x.itemsize}")


def test_every_function_of_one_argument_is_here():
    covered = {*FUNCTIONS, *EXACT, *OF_INTEGERS}
    assert covered == {name for name, function in ALL.items() if function.arity == 1}
