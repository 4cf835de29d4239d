"""Every operation with every number of lanes: LLVM does not abort, and results equal those of one lane, for
every vector extension.
"""

import numpy as np
import pytest

from gossamer_host_runtime import architecture
from gossamer_ir.core.build import index, index_var
from gossamer_ir.nodes import (
    Binary,
    Broadcast,
    Call,
    Cast,
    Compare,
    LaneReduce,
    Lanes,
    Load,
    Select,
    Unary,
)

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float32", "float64"]
LANES = [2, 4, 8, 16, 32, 64]
CPUS = ["host"] + (["x86-64", "x86-64-v3"] if architecture() == "x86_64" else [])
COUNT = 128
ARITHMETIC = ["add", "sub", "mul", "min", "max"]
OF_INTEGERS = ["floordiv", "floormod", "bitand", "bitor", "bitxor", "shl", "shr"]


def named(dtype, lanes):
    return dtype if lanes == 1 else f"{dtype}x{lanes}"


def elementwise_rows(dtype, lanes):
    name = named(dtype, lanes)
    operations = ARITHMETIC + (["div"] if dtype in FLOATS else OF_INTEGERS)

    def x(at):
        return Load("X", (at,), name)

    def z(at):
        return Load("Z", (at,), name)

    def through(other):
        return lambda at: Cast(name, Cast(named(other, lanes), x(at)))

    return [
        *(lambda at, op=op: Binary(op, x(at), z(at)) for op in operations),
        *(lambda at, op=op: Select(Compare(op, x(at), z(at)), x(at), z(at)) for op in ("lt", "eq")),
        *(through(other) for other in [*INTEGERS, *FLOATS, "bool"]),
        lambda at: Unary("neg", x(at)),
        lambda at: Call("abs", (x(at),), name),
    ]


def memory_rows(dtype, lanes):
    """Masked loads, masked gathers in reverse order, and reductions in every lane."""
    name, wide = named(dtype, lanes), Lanes(lanes)
    last = Broadcast(Binary("sub", index_var("n"), index(1)), wide)

    def x(at):
        return Load("X", (at,), name)

    def z(at):
        return Load("Z", (at,), name)

    def masked(at):
        return Load("X", (at,), name, Compare("lt", x(at), z(at)), z(at))

    def gathered(at):
        return Load("X", (Binary("sub", last, at),), name, Compare("lt", x(at), z(at)), z(at))

    def reduced(op):
        return lambda at: Broadcast(LaneReduce(op, x(at)), wide)

    return [masked, gathered, *(reduced(op) for op in ("add", "min", "max"))]


def samples(dtype):
    generator = np.random.default_rng(0)
    if dtype in FLOATS:
        values = np.array([0, -0.0, 1.5, -2.25, np.inf, -np.inf, np.nan, 7, 1e-30], dtype)
        return generator.choice(values, (2, COUNT))
    limits = np.iinfo(dtype)
    values = np.array([limits.min, limits.max, 0, 1, 2, 3, 7, 8, 31, limits.max - 1], dtype)
    return generator.choice(values, (2, COUNT))


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS])
def test_lanes_change_nothing(build, elementwise, dtype):
    x, z = samples(dtype)

    def run(lanes, cpu):
        rows = elementwise_rows(dtype, lanes)
        module = elementwise(rows, inputs=(dtype, dtype), output=dtype, lanes=lanes)
        result = np.zeros((len(rows), COUNT), dtype)
        build(module, f"generic-cpu:cpu={cpu}")(x, z, result)
        return result

    expected = run(1, "host")
    for lanes in LANES:
        assert np.array_equal(run(lanes, "host"), expected, equal_nan=dtype in FLOATS)
    for cpu in CPUS[1:]:
        assert np.array_equal(run(16, cpu), expected, equal_nan=dtype in FLOATS)


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("dtype", ["int8", "int64", *FLOATS])
def test_masks_gathers_and_reductions(build, elementwise, dtype, cpu):
    x, z = samples(dtype)
    x[np.isnan(x)] = 3
    x[np.isinf(x)] = -5
    for lanes in LANES:
        rows = memory_rows(dtype, lanes)
        module = elementwise(rows, inputs=(dtype, dtype), output=dtype, lanes=lanes)
        result = np.zeros((len(rows), COUNT), dtype)
        build(module, f"generic-cpu:cpu={cpu}")(x, z, result)
        groups = x.reshape(-1, lanes)
        expected = [np.where(x < z, x, z), np.where(x < z, x[::-1], z)]
        for reduced in (groups.sum(1, dtype=dtype), groups.min(1), groups.max(1)):
            expected.append(np.repeat(reduced, lanes))
        assert np.array_equal(result, expected, equal_nan=dtype in FLOATS)
