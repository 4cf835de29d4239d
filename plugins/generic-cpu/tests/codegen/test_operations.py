"""Every scalar and vector operation against NumPy, with the operands at which machines differ."""

import numpy as np
import pytest

from gossamer_ir.core.build import constant, index
from gossamer_ir.core.integers import UNBOUNDED, evaluate_int64
from gossamer_ir.nodes import Binary, Broadcast, Call, Cast, Compare, Lanes, Load, Select, Unary

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float32", "float64"]
COMPARES = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less,
    "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip


def integer_pairs(dtype):
    limits = np.iinfo(dtype)
    small = [-7, -3, -2, -1, 0, 1, 2, 3, 7] if limits.min < 0 else [0, 1, 2, 3, 7, 8]
    special = np.array([limits.min, limits.min + 1, *small, limits.max - 1, limits.max], dtype)
    pairs = np.array(np.meshgrid(special, special), dtype=dtype).reshape(2, -1)
    return padded(pairs)


def float_pairs(dtype):
    special = [0.0, -0.0, 1.5, -2.25, np.inf, -np.inf, np.nan, 3e38, 1e-40]
    return padded(np.array(np.meshgrid(special, special), dtype=dtype).reshape(2, -1))


def padded(pairs):
    return np.ascontiguousarray(np.pad(pairs, ((0, 0), (0, -pairs.shape[1] % 16)), mode="edge"))


def loads(dtype, lanes):
    name = dtype if lanes == 1 else f"{dtype}x{lanes}"
    return [lambda at, b=b: Load(b, (at,), name) for b in "XZ"]


def run(build, elementwise, rows, pairs, *, output, lanes):
    dtype = pairs.dtype.name
    kernel = build(elementwise(rows, inputs=(dtype, dtype), output=output, lanes=lanes))
    result = np.zeros((len(rows), pairs.shape[1]), output)
    kernel(pairs[0], pairs[1], result)
    return result


def binary(dtype, lanes, operations):
    x, z = loads(dtype, lanes)
    return [lambda at, op=op: Binary(op, x(at), z(at)) for op in operations]


@pytest.mark.parametrize("lanes", [1, 16])
@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_arithmetic(build, elementwise, dtype, lanes):
    x, z = pairs = integer_pairs(dtype)
    with np.errstate(all="ignore"):
        expected = {
            "add": x + z, "sub": x - z, "mul": x * z, "min": np.minimum(x, z),
            "max": np.maximum(x, z), "bitand": x & z, "bitor": x | z, "bitxor": x ^ z,
            "floordiv": x // z, "floormod": x % z,
        }  # fmt: skip
    rows = binary(dtype, lanes, expected)
    result = run(build, elementwise, rows, pairs, output=dtype, lanes=lanes)
    for operation, row in zip(expected, result, strict=True):
        assert np.array_equal(row, expected[operation]), operation


@pytest.mark.parametrize("dtype", INTEGERS)
def test_shifts_by_any_count(build, elementwise, dtype):
    x, z = pairs = integer_pairs(dtype)
    bits = np.iinfo(dtype).bits
    counts = [int(count) % 2**bits for count in z]
    left = [int(a) * 2 ** min(count, bits) for a, count in zip(x, counts, strict=True)]
    right = [int(a) >> min(count, bits) for a, count in zip(x, counts, strict=True)]
    rows = binary(dtype, 1, ["shl", "shr"])
    result = run(build, elementwise, rows, pairs, output=dtype, lanes=1)
    assert [int(value) % 2**bits for value in result[0]] == [value % 2**bits for value in left]
    assert result[1].tolist() == right


def test_constants_are_folded_to_what_the_machine_computes(build, elementwise):
    pairs = integer_pairs("int64")
    result = run(build, elementwise, binary("int64", 1, UNBOUNDED), pairs, output="int64", lanes=1)
    for operation, row in zip(UNBOUNDED, result, strict=True):
        assert row.tolist() == [evaluate_int64(operation, *pair) for pair in pairs.T.tolist()], (
            operation
        )


@pytest.mark.parametrize("divisor", [1, 2, 3, 8, 64, -1, -2, -3])
def test_division_by_constants(build, elementwise, divisor):
    pairs = integer_pairs("int64")
    x, _ = loads("int64", 1)
    rows = [
        lambda at: Binary("floordiv", x(at), index(divisor)),
        lambda at: Binary("floormod", x(at), index(divisor)),
    ]
    result = run(build, elementwise, rows, pairs, output="int64", lanes=1)
    with np.errstate(all="ignore"):
        assert np.array_equal(result[0], pairs[0] // divisor)
        assert np.array_equal(result[1], pairs[0] % divisor)


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("dtype", FLOATS)
def test_float_arithmetic(build, elementwise, dtype, lanes):
    with np.errstate(all="ignore"):
        x, z = pairs = float_pairs(dtype)
        expected = {
            "add": x + z, "sub": x - z, "mul": x * z, "div": x / z,
            "min": np.minimum(x, z), "max": np.maximum(x, z),
        }  # fmt: skip
    rows = binary(dtype, lanes, expected)
    result = run(build, elementwise, rows, pairs, output=dtype, lanes=lanes)
    for operation, row in zip(expected, result, strict=True):
        assert np.array_equal(row, expected[operation], equal_nan=True), operation


@pytest.mark.parametrize("lanes", [1, 16])
@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS])
def test_comparisons_stored_as_bools(build, elementwise, dtype, lanes):
    with np.errstate(all="ignore"):
        pairs = float_pairs(dtype) if dtype in FLOATS else integer_pairs(dtype)
    x, z = loads(dtype, lanes)
    rows = [lambda at, op=op: Compare(op, x(at), z(at)) for op in COMPARES]
    result = run(build, elementwise, rows, pairs, output="bool", lanes=lanes)
    for (operation, compare), row in zip(COMPARES.items(), result, strict=True):
        assert np.array_equal(row, compare(*pairs)), operation


@pytest.mark.parametrize("target", ["int8", "int32", "int64", "uint8", "uint64"])
@pytest.mark.parametrize("source", FLOATS)
def test_casts_of_floats_saturate(build, elementwise, source, target):
    with np.errstate(all="ignore"):
        pairs = float_pairs(source)
    x, _ = loads(source, 1)
    result = run(
        build, elementwise, [lambda at: Cast(target, x(at))], pairs, output=target, lanes=1
    )
    limits = np.iinfo(target)
    for value, actual in zip(pairs[0].tolist(), result[0].tolist(), strict=True):
        whole = 0 if np.isnan(value) else value
        bounded = min(max(whole, limits.min), limits.max)
        assert actual == (int(bounded) if np.isfinite(bounded) else bounded)


@pytest.mark.parametrize("target", [*INTEGERS, *FLOATS])
@pytest.mark.parametrize("source", INTEGERS)
def test_casts_of_integers_wrap(build, elementwise, source, target):
    pairs = integer_pairs(source)
    x, _ = loads(source, 1)
    rows = [lambda at: Cast(target, x(at))]
    result = run(build, elementwise, rows, pairs, output=target, lanes=1)
    assert np.array_equal(result[0], pairs[0].astype(target))


def test_casts_to_bool_compare_with_zero(build, elementwise):
    with np.errstate(all="ignore"):
        pairs = float_pairs("float32")
    x, _ = loads("float32", 1)
    rows = [lambda at: Cast("bool", x(at)), lambda at: Unary("not", Cast("bool", x(at)))]
    result = run(build, elementwise, rows, pairs, output="bool", lanes=1)
    assert np.array_equal(result[0], pairs[0].astype(bool))
    assert np.array_equal(result[1], ~pairs[0].astype(bool))


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("dtype", FLOATS)
def test_math_functions_and_selection(build, elementwise, dtype, lanes):
    with np.errstate(all="ignore"):
        a, b = pairs = float_pairs(dtype)
        expected = [
            np.sqrt(a), np.abs(a), np.floor(a), np.ceil(a), -a, np.where(a < b, a, b),
        ]  # fmt: skip
    x, z = loads(dtype, lanes)
    name = dtype if lanes == 1 else f"{dtype}x{lanes}"
    rows = [
        *(lambda at, f=f: Call(f, (x(at),), name) for f in ("sqrt", "abs", "floor", "ceil")),
        lambda at: Unary("neg", x(at)),
        lambda at: Select(Compare("lt", x(at), z(at)), x(at), z(at)),
    ]
    result = run(build, elementwise, rows, pairs, output=dtype, lanes=lanes)
    for row, wanted in zip(result, expected, strict=True):
        assert np.array_equal(row, wanted, equal_nan=True)


def test_fma_rounds_once(build, elementwise):
    pairs = padded(np.array([[1 + 2.0**-30], [1 - 2.0**-30]]))
    x, z = loads("float64", 1)
    rows = [lambda at: Call("fma", (x(at), z(at), constant(-1, "float64")), "float64")]
    result = run(build, elementwise, rows, pairs, output="float64", lanes=1)
    assert (result[0] == -(2.0**-60)).all()


@pytest.mark.parametrize("dtype", ["int32", "int8"])
def test_unary_operations_wrap(build, elementwise, dtype):
    pairs = integer_pairs(dtype)
    x, _ = loads(dtype, 16)
    name = f"{dtype}x16"
    one = Broadcast(constant(1, dtype), Lanes(16))
    rows = [
        lambda at: Unary("neg", x(at)),
        lambda at: Unary("bitnot", x(at)),
        lambda at: Call("abs", (x(at),), name),
        lambda at: Binary("add", x(at), one),
    ]
    result = run(build, elementwise, rows, pairs, output=dtype, lanes=16)
    a = pairs[0]
    with np.errstate(all="ignore"):
        for row, wanted in zip(result, [-a, ~a, np.abs(a), a + np.ones(1, dtype)], strict=True):
            assert np.array_equal(row, wanted)
