"""Every operation on every integer, float and bool dtype, scalar and in vectors, natively and interpreted,
against NumPy; reductions over vectors and over rows of a sparse matrix.
"""

from itertools import pairwise

import numpy as np
import pytest

import gossamer as gs
from gossamer_ir.interpret import run
from gossamer_ir.script import parse_module

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float32", "float64")
EVERY = (*INTEGERS, *FLOATS, "float16", "bool")
INF, NAN = np.inf, np.nan

SCRIPT = """
@T.prim_func
def rows({params}, y: T.handle, n: T.int64) -> None:
    T.func_attr({{"sparse_tir_level": 0}})
    {buffers}
    Y = T.match_buffer(y, ({count}, n), "{output}")
    {loop}
{stores}
"""
LOOP = "for i in T.serial(n):"
VECTORS = "for o in T.serial(n // {lanes}):\n        for l in T.vectorized({lanes}):"


@pytest.fixture(autouse=True)
def quiet():
    with np.errstate(all="ignore"):
        yield


def program(values, *, inputs, output, lanes):
    """Y[r, i] = values[r], which read X (and Z) at `@`."""
    at = "i" if lanes == 1 else f"o * {lanes} + l"
    loop = LOOP if lanes == 1 else VECTORS.format(lanes=lanes)
    indent = " " * (8 if lanes == 1 else 12)
    stores = "\n".join(
        f"{indent}Y[{row}, {at}] = {value.replace('@', at)}" for row, value in enumerate(values)
    )
    names = dict(zip("XZ", inputs, strict=False))
    return SCRIPT.format(
        params=", ".join(f"{name.lower()}: T.handle" for name in names),
        buffers="\n    ".join(
            f'{name} = T.match_buffer({name.lower()}, (n,), "{dtype}")'
            for name, dtype in names.items()
        ),
        count=len(values), output=output, loop=loop, stores=stores,
    )  # fmt: skip


def results(values, *arrays, output, lanes):
    """A row for each value: computed natively, and by the interpreter for the first elements."""
    text = program(values, inputs=[a.dtype.name for a in arrays], output=output, lanes=lanes)
    result = np.zeros((len(values), arrays[0].size), output)
    gs.compile(text)(*arrays, result)
    some = [array[:64].copy() for array in arrays]
    interpreted = np.zeros((len(values), 64), output)
    run(parse_module(text), {**dict(zip("xz", some, strict=False)), "y": interpreted, "n": 64})
    return result, interpreted


def pairs(dtype_name):
    """All pairs of the numbers at the edges of cases."""
    dtype = np.dtype(dtype_name)
    if dtype.kind == "b":
        special = np.array([False, True])
    elif dtype.kind == "f":
        info = np.finfo(dtype)
        special = np.array([0, -0.0, 1, -1.5, 7.25, -3, INF, -INF, NAN, info.max, info.tiny], dtype)
    else:
        info = np.iinfo(dtype)
        rest = [0, 1, 2, 3, 7, 8, 31, 63]
        rest += [-1, -2, -3, -7, -8, -31, -63] if info.min < 0 else []
        special = np.array([*rest, info.min, info.min + 1, info.max - 1, info.max], dtype)
    x, z = (part.ravel() for part in np.meshgrid(special, special))
    size = -(-max(x.size, 64) // 64) * 64
    order = np.random.default_rng(0).permutation(size)
    return np.resize(x, size)[order].copy(), np.resize(z, size)[order].copy()


def shifted(x, z, *, left):
    """The result of a shift. Counts are unsigned; if all bits are shifted out, it is 0, or -1."""
    bits = x.dtype.itemsize * 8
    counts = z.view(f"u{x.dtype.itemsize}").astype(object)
    counts = [min(int(count), 2 * bits) for count in counts]
    moved = [
        int(a) << count if left else int(a) >> count for a, count in zip(x, counts, strict=True)
    ]
    return np.array([value % 2**bits for value in moved], f"u{x.dtype.itemsize}").view(x.dtype)


def divided(function):
    return lambda x, z: np.where(z == 0, x.dtype.type(0), function(x, np.where(z == 0, 1, z)))


ALL = {
    "T.min(X[@], Z[@])": np.minimum,
    "T.max(X[@], Z[@])": np.maximum,
    "T.select(X[@] < Z[@], X[@], Z[@])": lambda x, z: np.where(x < z, x, z),
    "T.select(X[@] == Z[@], Z[@], X[@])": lambda x, z: np.where(x == z, z, x),
}
NUMBERS = {
    **ALL, "X[@] + Z[@]": np.add, "X[@] - Z[@]": np.subtract, "X[@] * Z[@]": np.multiply,
}  # fmt: skip
OF_INTEGERS = {
    **NUMBERS, "X[@] // Z[@]": divided(np.floor_divide), "X[@] % Z[@]": divided(np.mod),
    "X[@] & Z[@]": np.bitwise_and, "X[@] | Z[@]": np.bitwise_or, "X[@] ^ Z[@]": np.bitwise_xor,
    "~X[@]": lambda x, z: ~x, "T.abs(X[@])": lambda x, z: np.abs(x),
    "X[@] << Z[@]": lambda x, z: shifted(x, z, left=True),
    "X[@] >> Z[@]": lambda x, z: shifted(x, z, left=False),
}  # fmt: skip
OF_FLOATS = {
    **NUMBERS, "X[@] / Z[@]": np.divide, "-X[@]": lambda x, z: -x,
    "X[@] // Z[@]": np.floor_divide, "X[@] % Z[@]": np.mod,
}  # fmt: skip
OF_BOOLS = {
    **ALL, "X[@] and Z[@]": np.logical_and, "X[@] or Z[@]": np.logical_or,
    "not X[@]": lambda x, z: ~x, "X[@] & Z[@]": np.bitwise_and, "X[@] | Z[@]": np.bitwise_or,
    "X[@] ^ Z[@]": np.bitwise_xor,
}  # fmt: skip


def operations(dtype):
    kind = np.dtype(dtype).kind
    if kind == "b":
        return OF_BOOLS
    return OF_FLOATS if kind == "f" else OF_INTEGERS


@pytest.mark.parametrize("lanes", [1, 4, 16])
@pytest.mark.parametrize("dtype", EVERY)
def test_operations(dtype, lanes):
    x, z = pairs(dtype)
    table = operations(dtype)
    native, interpreted = results(tuple(table), x, z, output=dtype, lanes=lanes)
    for result, again, (value, oracle) in zip(native, interpreted, table.items(), strict=True):
        expected = np.asarray(oracle(x, z), dtype)
        np.testing.assert_array_equal(result, expected, err_msg=value)
        np.testing.assert_array_equal(again, expected[:64], err_msg=value)


COMPARISONS = {
    "X[@] == Z[@]": np.equal, "X[@] != Z[@]": np.not_equal, "X[@] < Z[@]": np.less,
    "X[@] <= Z[@]": np.less_equal, "X[@] > Z[@]": np.greater, "X[@] >= Z[@]": np.greater_equal,
}  # fmt: skip


@pytest.mark.parametrize("lanes", [1, 16])
@pytest.mark.parametrize("dtype", EVERY)
def test_comparisons(dtype, lanes):
    x, z = pairs(dtype)
    native, interpreted = results(tuple(COMPARISONS), x, z, output="bool", lanes=lanes)
    for result, again, (value, oracle) in zip(
        native, interpreted, COMPARISONS.items(), strict=True
    ):
        np.testing.assert_array_equal(result, oracle(x, z), err_msg=value)
        np.testing.assert_array_equal(again, oracle(x, z)[:64], err_msg=value)


def converted(x, target):
    """The result of a cast: integers wrap, floats are truncated and saturated, NaN becomes 0."""
    dtype = np.dtype(target)
    if x.dtype.kind != "f" or dtype.kind not in "iu":
        return x.astype(dtype)
    info = np.iinfo(dtype)

    def one(value):
        if np.isnan(value):
            return 0
        if np.isinf(value):
            return info.max if value > 0 else info.min
        return min(max(int(value), info.min), info.max)

    return np.array([one(float(value)) for value in x], dtype)


def cast_values(dtype):
    x, _ = pairs(dtype)
    if np.dtype(dtype).kind != "f":
        return x
    limits = [2.0**power for power in (7, 8, 15, 16, 31, 32, 63, 64)]
    near = [value + step for value in limits for step in (-0.5, 0, 1)]
    below = [-value for value in near]
    values = np.array([*near, *below, 0.99, -0.99, 3e9, INF, -INF, NAN], np.float64).astype(dtype)
    return np.resize(np.concatenate([values, x]), x.size + 64)


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("target", EVERY)
@pytest.mark.parametrize("source", EVERY)
def test_casts_between_all_pairs(source, target, lanes):
    x = cast_values(source)
    (native,), (interpreted,) = results((f"T.{target}(X[@])",), x, output=target, lanes=lanes)
    expected = converted(x, target)
    np.testing.assert_array_equal(native, expected)
    np.testing.assert_array_equal(interpreted, expected[:64])


REDUCTIONS = {
    "X + Y": np.add, "X * Y": np.multiply, "min": np.minimum, "max": np.maximum,
    "and": np.logical_and, "or": np.logical_or,
}  # fmt: skip


def reductions(dtype):
    if dtype == "bool":
        return ["and", "or", "min", "max"]
    return ["X + Y", "X * Y", "min", "max"]


def combined(op, old, new):
    match op:
        case "X + Y" | "X * Y":
            return f"{old} {op[2]} {new}"
        case "and" | "or":
            return f"{old} {op} {new}"
    return f"T.{op}({old}, {new})"


def initial(op, dtype_name):
    dtype = np.dtype(dtype_name)
    if dtype.kind == "b":
        return "True" if op in ("and", "min") else "False"
    if op in ("min", "max"):
        return f'T.{"max" if op == "min" else "min"}_value("{dtype_name}")'
    return f"T.{dtype_name}({0 if op == 'X + Y' else 1})"


def reducible(dtype, size, op):
    rng = np.random.default_rng(2)
    if dtype == "bool":
        return rng.random(size) < (0.9 if op in ("and", "min") else 0.1)
    if np.dtype(dtype).kind == "f":
        numbers = rng.integers(-8, 9, size) if op != "X * Y" else rng.choice([1, -1, 2, 0.5], size)
        return numbers.astype(dtype)
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, size, dtype, endpoint=True)


@pytest.mark.parametrize("lanes", [2, 8, 16])
@pytest.mark.parametrize("dtype", EVERY)
def test_reductions_over_vectors(dtype, lanes):
    for op in reductions(dtype):
        x = reducible(dtype, 64 if op != "X * Y" else 32, op)
        text = f"""
@T.prim_func
def reduce(x: T.handle, y: T.handle, n: T.int64) -> None:
    T.func_attr({{"sparse_tir_level": 0}})
    X = T.match_buffer(x, (n,), "{dtype}")
    Y = T.match_buffer(y, (1,), "{dtype}")
    Y[0] = {initial(op, dtype)}
    for o in T.serial(n // {lanes}):
        for l in T.vectorized({lanes}):
            Y[0] = {combined(op, "Y[0]", f"X[o * {lanes} + l]")}
"""
        expected = REDUCTIONS[op].reduce(x, dtype=dtype)
        result, interpreted = np.zeros(1, dtype), np.zeros(1, dtype)
        gs.compile(text)(x, result)
        run(parse_module(text), {"x": x, "y": interpreted, "n": len(x)})
        assert (result[0], interpreted[0]) == (expected, expected), op


@pytest.mark.parametrize("dtype", EVERY)
def test_reductions_over_rows_of_a_sparse_matrix(dtype):
    lengths = np.array([0, 3, 40, 1, 0, 17, 0])
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    columns = np.concatenate([np.arange(length) for length in lengths]).astype(np.int32)
    for op in reductions(dtype):
        a = reducible(dtype, indptr[-1], op)
        if op == "X * Y" and dtype == "float16":
            a = np.abs(a) ** 0
        text = f"""
@T.prim_func
def rows(a: T.handle, y: T.handle, p: T.handle, q: T.handle,
         m: T.int32, n: T.int32, nnz: T.int32) -> None:
    T.func_attr({{"sparse_tir_level": 2}})
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (p, q), "int32")
    A = T.sp.match_buffer(a, (I, J), "{dtype}")
    Y = T.sp.match_buffer(y, (I,), "{dtype}")
    with T.sp.iteration([I, J], "SR", "rows") as [i, j]:
        with T.init():
            Y[i] = {initial(op, dtype)}
        Y[i] = {combined(op, "Y[i]", "A[i, j]")}
"""
        result, interpreted = np.zeros(7, dtype), np.zeros(7, dtype)
        gs.compile(text)(a, result, indptr, columns, n=64)
        arguments = {"a": a, "p": indptr, "q": columns, "m": 7, "n": 64, "nnz": len(a)}
        run(parse_module(text), {**arguments, "y": interpreted})
        start = interpreted[0]
        expected = [
            REDUCTIONS[op].reduce(a[low:high], initial=start, dtype=dtype)
            for low, high in pairwise(indptr)
        ]
        np.testing.assert_array_equal(result, np.array(expected, dtype), err_msg=op)
        np.testing.assert_array_equal(interpreted, np.array(expected, dtype), err_msg=op)
