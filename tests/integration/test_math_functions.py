"""Math functions natively, scalar and in vectors, with and without fused multiply-add: the maximum error in
units of the last place, and the values at the edges of the domain.
"""

import re
from functools import cache

import numpy as np
import pytest

import gossamer as gs
from gossamer.compilation.pipeline import stage_texts
from gossamer_ir.interpret import run
from gossamer_ir.nodes import Call
from gossamer_ir.script import parse_module
from gossamer_ir.traversal.walk import walk
from gossamer_lower import lower_math, lower_to_flat
from tests.integration.math_oracle import EXACT, FUNCTIONS, HAS_LONG_DOUBLE, LONG, errors, numbers

pytestmark = pytest.mark.skipif(
    not HAS_LONG_DOUBLE, reason="long double is not more precise than float64 here"
)

INF, NAN = np.inf, np.nan
TARGETS = ("generic-cpu", "generic-cpu:cpu=x86-64")


SCALAR = "for i in T.serial(n):\n        Y[i] = {value}"
VECTOR = (
    "for o in T.serial(n // {lanes}):\n        for l in T.vectorized({lanes}):\n"
    "            Y[o * {lanes} + l] = {value}"
)


def program(function, dtype, *, lanes, arity=1):
    at = "i" if lanes == 1 else f"o * {lanes} + l"
    value = f"T.{function}({', '.join(f'{name}[{at}]' for name in 'XZW'[:arity])})"
    params = ", ".join(f"{name}: T.handle" for name in "xzw"[:arity])
    buffers = "\n    ".join(
        f'{name.upper()} = T.match_buffer({name}, (n,), "{dtype}")'
        for name in (*"xzw"[:arity], "y")
    )
    body = (SCALAR if lanes == 1 else VECTOR).format(lanes=lanes, value=value)
    return f"""
@T.prim_func
def apply({params}, y: T.handle, n: T.int64) -> None:
    T.func_attr({{"sparse_tir_level": 0}})
    {buffers}
    {body}
"""


def applied(function, *arrays, lanes=1, target="generic-cpu"):
    """The compiled function on arrays, whose length is a multiple of the lanes."""
    dtype = arrays[0].dtype.name
    kernel = gs.compile(program(function, dtype, lanes=lanes, arity=len(arrays)), target=target)
    result = np.full_like(arrays[0], 7)
    kernel(*arrays, result)
    return result


@cache
def exact_values(function, dtype):
    """The function of `numbers(dtype)`, in long double."""
    with np.errstate(all="ignore"):
        return FUNCTIONS[function][0](numbers(dtype).astype(LONG))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_errors_are_as_small_as_stated(function, dtype, lanes, target):
    _, narrow, wide = FUNCTIONS[function]
    x = numbers(dtype)
    exact = exact_values(function, dtype)
    result = applied(function, x, lanes=lanes, target=target)
    off = errors(result, exact)
    worst = int(np.argmax(off))
    assert off[worst] <= (narrow if dtype == "float32" else wide), (x[worst], result[worst])


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("lanes", [1, 2, 4, 8, 16, 32, 64])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("function", EXACT)
def test_roundings_are_exact(function, dtype, lanes, target):
    x = numbers(dtype, count=500)
    result = applied(function, x, lanes=lanes, target=target)
    expected = EXACT[function](x)
    np.testing.assert_array_equal(result, expected)
    ordinary = ~np.isnan(x)
    np.testing.assert_array_equal(np.signbit(result)[ordinary], np.signbit(expected)[ordinary])


@pytest.mark.parametrize("lanes", [2, 4, 16, 32, 64])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("function", ["exp", "sin", "log", "erf"])
def test_vectors_of_every_length_hold_the_same(function, dtype, lanes):
    x = numbers(dtype, count=200)
    np.testing.assert_array_equal(applied(function, x, lanes=lanes), applied(function, x, lanes=8))


POINTS = [
    ("exp", [0, -0.0, -INF, INF], [1, 1, 0, INF]),
    ("exp2", [0, 3, -4, 127, -149], [1, 8, 0.0625, 2.0**127, 2.0**-149]),
    ("expm1", [0, -0.0, -INF, -100, INF], [0, -0.0, -1, -1, INF]),
    ("log", [1, 0, -0.0, INF, -1, -INF], [0, -INF, -INF, INF, NAN, NAN]),
    ("log2", [1, 8, 0.25, 2.0**-126, 0], [0, 3, -2, -126, -INF]),
    ("log10", [1, 0, INF, -1], [0, -INF, INF, NAN]),
    ("log1p", [0, -0.0, -1, INF, -2], [0, -0.0, -INF, INF, NAN]),
    ("tanh", [0, -0.0, 50, -50, INF, -INF], [0, -0.0, 1, -1, 1, -1]),
    ("erf", [0, -0.0, 50, -50, INF, -INF], [0, -0.0, 1, -1, 1, -1]),
    ("sigmoid", [0, -0.0, 200, -INF, INF], [0.5, 0.5, 1, 0, 1]),
    ("sin", [0, -0.0, INF, -INF], [0, -0.0, NAN, NAN]),
    ("cos", [0, -0.0, INF, -INF], [1, 1, NAN, NAN]),
    ("sqrt", [0, -0.0, 4, -1, INF], [0, -0.0, 2, NAN, INF]),
    ("rsqrt", [4, 0, INF, -1], [0.5, INF, 0, NAN]),
]


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("function", "points", "expected"), POINTS)
def test_points_at_which_the_value_is_exact(function, points, expected, dtype, lanes):
    x = np.resize(np.array([*points, NAN], dtype), 64)
    wanted = np.resize(np.array([*expected, NAN], dtype), 64)
    result = applied(function, x, lanes=lanes)
    np.testing.assert_array_equal(result, wanted)
    ordinary = ~np.isnan(wanted)
    assert (np.signbit(result) == np.signbit(wanted))[ordinary].all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("function", ["exp", "exp2", "log", "tanh", "erf", "sigmoid"])
def test_monotone_functions_do_not_decrease(function, dtype):
    """Tests numbers whose function values differ by more than the errors."""
    x = np.linspace(0.01, 6, 64_000).astype(dtype)
    assert (np.diff(applied(function, x, lanes=8).astype(np.float64)) >= -1e-15).all() or (
        dtype == "float32" and (np.diff(applied(function, x, lanes=8)) >= 0).all()
    )


def find_nth_bits(words, counts):
    """The oracle: the positions of the set bits of each word, as text."""
    width = words.itemsize * 8
    mask = 2**width - 1
    messages = []
    for word, count in zip(words.tolist(), counts.tolist(), strict=True):
        places = [
            number for number, bit in enumerate(f"{word & mask:0{width}b}"[::-1]) if bit == "1"
        ]
        messages.append(dict(enumerate(places)).get(count & mask, width))
    return np.array(messages, words.dtype)


@cache
def words_and_positions(dtype_name):
    """Words, the numbers of set bits in them, and the positions of these bits."""
    rng = np.random.default_rng(9)
    dtype = np.dtype(dtype_name)
    bits = [rng.integers(0, 2**63, 2048, np.uint64) << np.uint64(1) for _ in range(3)]
    words = np.concatenate([bits[0], bits[0] & bits[1] & bits[2], bits[0] | bits[1] | bits[2]])
    words = words.astype(f"u{dtype.itemsize}").view(dtype)
    words[:4] = [0, 1, ~dtype.type(0), np.left_shift(dtype.type(1), 8 * dtype.itemsize - 1)]
    counts = rng.integers(0, 8 * dtype.itemsize + 2, len(words)).astype(dtype)
    counts[4:16:3] = ~dtype.type(0)
    return words, counts, find_nth_bits(words, counts)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize(
    "dtype_name", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
)
def test_positions_of_bits(dtype_name, lanes, target):
    words, counts, positions = words_and_positions(dtype_name)
    result = applied("find_nth_bit", words, counts, lanes=lanes, target=target)
    np.testing.assert_array_equal(result, positions)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_powers(dtype, lanes, target):
    rng = np.random.default_rng(6)
    x = np.abs(numbers(dtype, count=5000))
    most = 745 if dtype == "float64" else 104
    with np.errstate(all="ignore"):
        y = rng.uniform(-most, most, len(x)) / np.log(x.astype(np.float64))
        y = np.where(rng.random(len(x)) < 0.5, y, rng.normal(size=len(x)) * 3).astype(dtype)
        exact = np.power(x.astype(LONG), y.astype(LONG))
    off = errors(applied("pow", x, y, lanes=lanes, target=target), exact)
    worst = int(np.argmax(off))
    assert off[worst] <= (0.51 if dtype == "float32" else 1.2), (x[worst], y[worst])


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_powers_at_the_edges_are_those_of_c(dtype, lanes):
    tiny = np.finfo(dtype).smallest_subnormal
    special = [
        0.0, -0.0, 1, -1, 2, -2, 3, -3, 0.5, -0.5, INF, -INF, NAN, 1e9 + 1, 2.0**53 - 1, 2.0**53,
        -(2.0**53) + 1, tiny, -tiny, 1.5, -1.5, 1e30, -1e30,
    ]  # fmt: skip
    x, y = (part.ravel() for part in np.meshgrid(*[np.array(special, dtype)] * 2))
    x, y = (np.resize(part, len(part) // 8 * 8 + 8).copy() for part in (x, y))
    with np.errstate(all="ignore"):
        expected = np.power(x, y)
    result = applied("pow", x, y, lanes=lanes)
    np.testing.assert_allclose(result, expected, rtol=2 * np.finfo(dtype).eps)
    ordinary = ~np.isnan(expected)
    assert (np.signbit(result) == np.signbit(expected))[ordinary].all()


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("lanes", [1, 8])
def test_a_fused_product_is_rounded_once_with_and_without_an_instruction(lanes, target):
    rng = np.random.default_rng(7)
    a, b = rng.normal(size=(2, 4096)).astype(np.float32)
    exact = a.astype(np.float64) * b
    c = np.where(rng.random(4096) < 0.5, -exact, rng.normal(size=4096)).astype(np.float32)
    a[:4], b[:4], c[:4] = [INF, 1e38, NAN, 0], [1, 1e38, 1, 0], [-INF, -INF, 1, -0.0]
    with np.errstate(all="ignore"):
        expected = (a.astype(LONG) * b + c).astype(np.float32)
    np.testing.assert_array_equal(applied("fma", a, b, c, lanes=lanes, target=target), expected)


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
# All targets have an instruction for tf32, which has no arithmetic.
@pytest.mark.parametrize("function", sorted({*FUNCTIONS, *EXACT} - {"tf32"}))
def test_the_interpreter_agrees_with_the_arithmetic(function, dtype, lanes):
    flat = lower_to_flat(parse_module(program(function, dtype, lanes=lanes)))
    plain = lower_math(flat, instructions={"sqrt", "abs"})
    left = {node.function for node in walk(plain) if isinstance(node, Call)}
    assert left <= {"sqrt", "abs"}
    x = numbers(dtype, count=2)
    result = np.empty_like(x)
    run(plain, {"x": x, "y": result, "n": len(x)})
    np.testing.assert_array_equal(
        result, applied(function, x, lanes=lanes, target="generic-cpu:cpu=x86-64")
    )


def program_of(values, dtype, *, lanes):
    """A program with a loop for each value of X and Z at `@`; each fills a row of Y."""
    index = "i" if lanes == 1 else f"o * {lanes} + l"
    lines = []
    for row, value in enumerate(values):
        lines += (
            ["for i in T.serial(n):"]
            if lanes == 1
            else [f"for o in T.serial(n // {lanes}):", f"    for l in T.vectorized({lanes}):"]
        )
        lines.append(f"        Y[{row}, {index}] = {value.replace('@', index)}")
    body = "\n    ".join(lines)
    return f"""
@T.prim_func
def apply(x: T.handle, z: T.handle, y: T.handle, n: T.int64) -> None:
    T.func_attr({{"sparse_tir_level": 0}})
    X = T.match_buffer(x, (n,), "{dtype}")
    Z = T.match_buffer(z, (n,), "{dtype}")
    Y = T.match_buffer(y, ({len(values)}, n), "{dtype}")
    {body}
"""


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "float64"])
def test_no_mathematical_library_is_called(dtype, lanes, target):
    unary = [f"T.{function}(X[@])" for function in (*FUNCTIONS, *EXACT)]
    text = program_of([*unary, "T.pow(X[@], Z[@])"], dtype, lanes=lanes)
    code = stage_texts(parse_module(text), target=target)["asm"]
    called = set(re.findall(r"call\w*\s+(\S+)", code))
    assert called <= {"memset@PLT"}
