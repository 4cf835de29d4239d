"""float16 and bfloat16: all 16-bit values, every operation, with and without conversion instructions;
sparse matrix products in these dtypes.
"""

from functools import cache

import numpy as np
import pytest

import gossamer as gs
from gossamer_ir.core.bfloat16 import decode_bfloat16, encode_bfloat16, round_bfloat16
from gossamer_ir.core.dtypes import SCALARS, DType
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interpret import run
from gossamer_ir.script import parse_module

TARGETS = ("generic-cpu", "generic-cpu:cpu=x86-64")
HALVES = tuple(name for name in SCALARS if DType(name).computed_in != name)
INF, NAN = np.inf, np.nan


@pytest.fixture(autouse=True)
def quiet():
    with np.errstate(all="ignore"):
        yield


ALL = np.arange(2**16, dtype=np.uint16)

SCRIPT = """
@T.prim_func
def apply({params}, n: T.int64) -> None:
    T.func_attr({{"sparse_tir_level": 0}})
    {buffers}
    {body}
"""
LOOP = "for i in T.serial(n):\n        Y[i] = {value}"
VECTORS = "for o in T.serial(n // 8):\n        for l in T.vectorized(8):\n            Y[o * 8 + l] = {value}"


def program(value, *, inputs, output, lanes=1):
    """Y[i] = value, where value names X, Z and W at `@`."""
    at = "i" if lanes == 1 else "o * 8 + l"
    names = dict(zip("XZW", inputs, strict=False)) | {"Y": output}
    params = ", ".join(f"{name.lower()}: T.handle" for name in names)
    buffers = "\n    ".join(
        f'{name} = T.match_buffer({name.lower()}, (n,), "{dtype}")' for name, dtype in names.items()
    )
    body = (LOOP if lanes == 1 else VECTORS).format(value=value.replace("@", at))
    return SCRIPT.format(params=params, buffers=buffers, body=body)


def applied(value, *arrays, inputs, output, lanes=1, target="generic-cpu"):
    kernel = gs.compile(program(value, inputs=inputs, output=output, lanes=lanes), target=target)
    result = np.empty(arrays[0].shape, stored(output))
    kernel(*arrays, result)
    return result


def stored(dtype):
    return np.dtype("uint16" if dtype == "bfloat16" else dtype)


def values_of(array, dtype):
    """The values of stored numbers, in float64."""
    return np.asarray(decode_bfloat16(array) if dtype == "bfloat16" else array, np.float64)


def rounded(values, dtype):
    """Float64 numbers, stored in a dtype, rounded once."""
    if dtype == "bfloat16":
        return encode_bfloat16(round_bfloat16(np.asarray(values, np.float64)))
    return np.asarray(values).astype(dtype)


def same(actual, expected, dtype):
    """Equal numbers with equal signs, or both NaN."""
    a, b = values_of(actual, dtype), values_of(expected, dtype)
    np.testing.assert_array_equal(a, b)
    ordinary = ~np.isnan(a)
    np.testing.assert_array_equal(np.signbit(a)[ordinary], np.signbit(b)[ordinary])


def every(dtype):
    return ALL.copy() if dtype == "bfloat16" else ALL.view(np.float16).copy()


def pairs(dtype, count=4096):
    rng = np.random.default_rng(3)
    bits = rng.integers(0, 2**16, (2, count), np.uint16)
    near = rounded(rng.normal(size=(2, count)), dtype)
    special = rounded([0, -0.0, 1, -1, INF, -INF, NAN, 1e-7, 6e4, 1e-40, 3e38, 0.1], dtype)
    edges = np.array(np.meshgrid(special, special)).reshape(2, -1)
    parts = [bits if dtype == "bfloat16" else bits.view(np.float16), near, edges]
    return np.ascontiguousarray(np.concatenate(parts, axis=1))


def wide_numbers():
    """Float64 and float32 numbers around every boundary between 16-bit numbers: ties, and their
    neighbors."""
    rng = np.random.default_rng(4)
    halves = [values_of(every(dtype), dtype) for dtype in HALVES]
    messages = []
    for numbers in halves:
        numbers = np.sort(numbers[np.isfinite(numbers)])
        ties = (numbers[:-1] + numbers[1:]) / 2
        ties = rng.choice(ties, 4096)
        messages += [
            ties,
            np.nextafter(ties, INF),
            np.nextafter(ties, -INF),
            ties.astype(np.float32),
        ]
    any_bits = rng.integers(0, 2**32, 20_000, np.uint32).view(np.float32).astype(np.float64)
    special = [0, -0.0, INF, -INF, NAN, 65519.99, 65520, 65504, 2.0**-25, 3.39e38, 1e300, 1e-300]
    everything = np.concatenate([*messages, any_bits, special])
    return np.resize(everything, len(everything) // 8 * 8 + 8)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("wide", ["float32", "float64"])
@pytest.mark.parametrize("half", HALVES)
def test_every_number_becomes_wider_exactly(half, wide, lanes, target):
    x = every(half)
    result = applied(f"T.{wide}(X[@])", x, inputs=[half], output=wide, lanes=lanes, target=target)
    same(result, values_of(x, half).astype(wide), wide)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("wide", ["float32", "float64"])
@pytest.mark.parametrize("half", HALVES)
def test_every_number_is_rounded_once_to_nearest_even(half, wide, lanes, target):
    x = wide_numbers().astype(wide)
    result = applied(f"T.{half}(X[@])", x, inputs=[wide], output=half, lanes=lanes, target=target)
    same(result, rounded(x, half), half)


OPERATIONS = {
    "X[@] + Z[@]": np.add, "X[@] - Z[@]": np.subtract, "X[@] * Z[@]": np.multiply,
    "X[@] / Z[@]": np.divide, "T.min(X[@], Z[@])": np.minimum, "T.max(X[@], Z[@])": np.maximum,
    "-X[@]": lambda x, z: -x, "T.abs(X[@])": lambda x, z: np.abs(x),
    "T.sqrt(X[@])": lambda x, z: np.sqrt(x), "T.floor(X[@])": lambda x, z: np.floor(x),
    "T.select(X[@] < Z[@], X[@], Z[@])": lambda x, z: np.where(x < z, x, z),
}  # fmt: skip


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("value", OPERATIONS)
def test_operations_are_those_of_float32_rounded(value, half, lanes, target):
    x, z = pairs(half)
    exact = OPERATIONS[value](values_of(x, half), values_of(z, half))
    result = applied(value, x, z, inputs=[half] * 2, output=half, lanes=lanes, target=target)
    a, b = values_of(result, half), values_of(rounded(exact, half), half)
    np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("function", ["exp", "log", "tanh", "sin", "rsqrt", "sigmoid"])
def test_functions_are_those_of_float32_rounded(function, half, lanes):
    x = every(half)
    result = applied(f"T.{function}(X[@])", x, inputs=[half], output=half, lanes=lanes)
    wide = values_of(x, half).astype(np.float32)
    single = applied(f"T.{function}(X[@])", wide, inputs=["float32"], output="float32", lanes=lanes)
    same(result, rounded(single, half), half)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("half", HALVES)
def test_fused_products_are_rounded_once(half, target):
    x, z = pairs(half)
    w = rounded(-values_of(x, half) * values_of(z, half), half)
    module = parse_module(program("T.fma(X[@], Z[@], W[@])", inputs=[half] * 3, output=half))
    expected = np.empty_like(x)
    run(module, {"x": x, "z": z, "w": w, "y": expected, "n": len(x)})
    result = applied(
        "T.fma(X[@], Z[@], W[@])", x, z, w, inputs=[half] * 3, output=half, target=target
    )
    np.testing.assert_array_equal(values_of(result, half), values_of(expected, half))


@cache
def cast_to_integer(half, other):
    """`every(half)` as Python truncates, within the limits of the dtype."""
    numbers = values_of(every(half), half)
    if other == "bool":
        return numbers != 0
    low, high = int(np.iinfo(other).min), int(np.iinfo(other).max)
    whole = [0 if np.isnan(v) else v for v in numbers.tolist()]
    return np.array([low if v <= low else high if v >= high else int(v) for v in whole], other)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("other", ["bool", "int8", "uint8", "int32", "uint32", "int64", "uint64"])
def test_casts_to_and_from_integers(other, half, lanes, target):
    x = every(half)
    result = applied(f"T.{other}(X[@])", x, inputs=[half], output=other, lanes=lanes, target=target)
    module = parse_module(program(f"T.{other}(X[@])", inputs=[half], output=other))
    np.testing.assert_array_equal(result, cast_to_integer(half, other))
    some, interpreted = x[::97].copy(), np.empty(len(x[::97]), other)
    run(module, {"x": some, "y": interpreted, "n": len(some)})
    np.testing.assert_array_equal(interpreted, result[::97])
    back = np.array([*np.random.default_rng(1).integers(-9, 9, 6), 127, 1], np.int64).astype(other)
    result = applied(
        f"T.{half}(X[@])", back, inputs=[other], output=half, lanes=lanes, target=target
    )
    same(result, rounded(back.astype(np.float64), half), half)


@pytest.mark.parametrize("half", HALVES)
def test_the_interpreter_agrees(half):
    x, z = pairs(half, count=200)
    text = program("X[@] * Z[@] + T.exp(X[@]) - T.max(X[@], Z[@])", inputs=[half] * 2, output=half)
    result, expected = np.empty_like(x), np.empty_like(x)
    run(parse_module(text), {"x": x, "z": z, "y": expected, "n": len(x)})
    gs.compile(text)(x, z, result)
    a, b = values_of(result, half), values_of(expected, half)
    np.testing.assert_allclose(a, b, rtol=2.0**-7 if half == "bfloat16" else 2.0**-10, atol=1e-6)


SPMM = """
@T.prim_func
def spmm(a: T.handle, b: T.handle, c: T.handle, indptr: T.handle, indices: T.handle,
         m: T.int32, n: T.int32, k: T.int32, nnz: T.int32) -> None:
    T.func_attr({{"sparse_tir_level": 2}})
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (indptr, indices), "int32")
    J_detach = T.sp.dense_fixed(n)
    K = T.sp.dense_fixed(k)
    A = T.sp.match_buffer(a, (I, J), "{half}")
    B = T.sp.match_buffer(b, (J_detach, K), "{half}")
    C = T.sp.match_buffer(c, (I, K), "float32")
    with T.sp.iteration([I, J, K], "SRS", "spmm") as [i, j, k]:
        with T.init():
            C[i, k] = 0.0
        C[i, k] = C[i, k] + T.float32(A[i, j]) * T.float32(B[j, k])
"""


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("shape", [(0, 5, 8), (7, 9, 1), (40, 33, 16), (25, 60, 37)])
def test_a_sparse_product_stored_in_16_bits_sums_in_float32(shape, half, target):
    m, n, k = shape
    rng = np.random.default_rng(9)
    dense = np.where(rng.random((m, n)) < 0.3, rng.integers(-8, 9, (m, n)), 0)
    dense[:1] = 0
    rows, indices = np.nonzero(dense)
    indptr = np.searchsorted(rows, np.arange(m + 1)).astype(np.int32)
    b = rng.integers(-8, 9, (n, k))
    c = np.full((m, k), NAN, np.float32)
    kernel = gs.compile(SPMM.format(half=half), target=target, specialize={"k": k})
    arrays = rounded(dense[rows, indices], half), rounded(b, half)
    kernel(*arrays, c, indptr, indices.astype(np.int32), m=m, n=n, nnz=len(rows))
    np.testing.assert_array_equal(c, (dense @ b).astype(np.float32))


def test_arrays_of_bfloat16_are_uint16_and_others_are_refused():
    kernel = gs.compile(program("X[@] + X[@]", inputs=["bfloat16"], output="bfloat16"))
    result = np.zeros(3, np.uint16)
    kernel(rounded([1.5, -2, 0], "bfloat16"), result)
    assert values_of(result, "bfloat16").tolist() == [3, -4, 0]
    with pytest.raises(ArgumentError) as caught:
        kernel(np.zeros(3, np.float32), result)
    assert caught.value.code == "kernel.dtype"
