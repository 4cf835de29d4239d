"""A `TransposeReduce` is a sum per vector, with few shuffles that stay in registers."""

import re

import numpy as np
import pytest

from gossamer_generic_cpu.backend import GenericCpu
from gossamer_host_runtime import architecture
from gossamer_ir.core.build import index, index_var
from gossamer_ir.interchange.records import Target
from gossamer_ir.nodes import Buffer, Compare, Lanes, Load, Ramp, Select, Store, TransposeReduce

DTYPES = ["float32", "float64", "int32", "int64", "int8", "uint16"]
CPUS = ["host"] + (["x86-64", "x86-64-v3"] if architecture() == "x86_64" else [])
NUMBERS = {"add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}
SIZE = (("n", "int64"),)
SHUFFLE = r"\n\s+v(?:unpck|perm|shuf|insert|extract|pblend|pshuf|punpck|blend|movs[hl]dup)\w*"


def run(at, lanes):
    return Ramp(index(at), index(1), Lanes(lanes))


def buffers(dtype):
    n = index_var("n")
    return tuple(Buffer(name, (n,), dtype, name.lower()) for name in "XY")


def rows(op, dtype, *, values, lanes):
    """Y[0:values] are the lane reductions of the rows of X, as a matrix with that many lanes."""
    vectors = (Load("X", (run(u * lanes, lanes),), f"{dtype}x{lanes}") for u in range(values))
    return Store("Y", (run(0, values),), TransposeReduce(op, tuple(vectors)))


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("lanes", [2, 4, 8, 16, 32])
def test_lane_u_is_the_sum_of_vector_u(build, serial, cpu, dtype, lanes):
    generator = np.random.default_rng(lanes)
    for values in (2, 4, 8, 16, 64):
        x = generator.integers(0, 3, values * lanes).astype(dtype)
        y = np.zeros(values * lanes, dtype)
        flat = serial(
            [rows("add", dtype, values=values, lanes=lanes)], buffers=buffers(dtype), scalars=SIZE
        )
        build(flat, f"generic-cpu:cpu={cpu}")(x=x, y=y)
        assert y[:values].tolist() == x.reshape(values, lanes).sum(1).tolist()
        assert not y[values:].any()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", NUMBERS)
def test_every_reducer_of_numbers(build, serial, dtype, op):
    x = np.random.default_rng(3).integers(1, 9, 8 * 16).astype(dtype)
    y = np.zeros(8 * 16, dtype)
    build(serial([rows(op, dtype, values=8, lanes=16)], buffers=buffers(dtype), scalars=SIZE))(
        x=x, y=y
    )
    with np.errstate(over="ignore"):
        assert y[:8].tolist() == NUMBERS[op].reduce(x.reshape(8, 16), axis=1, dtype=dtype).tolist()


@pytest.mark.parametrize(("op", "expected"), [("and", [0, 1, 0, 0]), ("or", [1, 1, 0, 1])])
def test_bools(build, serial, op, expected):
    x = np.array([[1, 0, 1, 1], [1, 1, 1, 1], [0, 0, 0, 0], [0, 0, 0, 1]], np.float32)
    vectors = [Load("X", (run(4 * u, 4),), "float32x4") for u in range(4)]
    zero = Load("Y", (run(0, 4),), "float32x4")
    reduced = TransposeReduce(op, tuple(Compare("ne", value, zero) for value in vectors))
    y = np.zeros(16, np.float32)
    chosen = Select(reduced, Load("X", (run(4, 4),), "float32x4"), zero)
    build(serial([Store("Y", (run(0, 4),), chosen)], buffers=buffers("float32"), scalars=SIZE))(
        x=x.reshape(-1), y=y
    )
    assert y[:4].tolist() == expected


@pytest.mark.parametrize("op", ["add", "min", "max"])
def test_nan_and_infinity_stay_in_their_lane(build, serial, op):
    x = np.arange(64, dtype=np.float32).reshape(4, 16)
    x[1, 3], x[2, 15] = np.nan, np.inf
    y = np.zeros(64, np.float32)
    build(
        serial([rows(op, "float32", values=4, lanes=16)], buffers=buffers("float32"), scalars=SIZE)
    )(x=x.reshape(-1), y=y)
    expected = NUMBERS[op].reduce(x, axis=1)
    assert np.array_equal(y[:4], expected, equal_nan=True)


@pytest.mark.parametrize(
    ("dtype", "values", "lanes", "shuffles", "additions"),
    [("float32", 16, 16, 30, 15), ("float64", 8, 8, 14, 7), ("float32", 8, 16, 17, 8)],
)
def test_avx512_needs_two_shuffles_for_one_addition(
    serial, dtype, values, lanes, shuffles, additions
):
    flat = serial(
        [rows("add", dtype, values=values, lanes=lanes)], buffers=buffers(dtype), scalars=SIZE
    )
    assembly = GenericCpu().texts(flat, Target.parse("generic-cpu:cpu=x86-64-v4"))["asm"]
    assert len(re.findall(SHUFFLE, assembly)) <= shuffles
    assert len(re.findall(r"\n\s+vaddp[sd]\b", assembly)) == additions
    assert "rsp)" not in assembly
