"""Results of the emitted code, compiled by LLVM, against NumPy and Python integers."""

from itertools import product

import numpy as np
import pytest
from native_kernel import run_native

from gossamer_ir.core.build import ZERO, add, constant, index, index_var, mul
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import (
    Allocate,
    Binary,
    Broadcast,
    Buffer,
    Call,
    Cast,
    Compare,
    Const,
    For,
    Function,
    IfThenElse,
    LaneReduce,
    Lanes,
    Load,
    Module,
    Param,
    Ramp,
    Select,
    Store,
    Unary,
)

ROW, N = index_var("i"), index_var("n")
LANES = 4
RUN = Ramp(mul(ROW, index(LANES)), index(1), Lanes(LANES))
SIGNED, UNSIGNED = ("int8", "int16", "int32", "int64"), ("uint8", "uint16", "uint32", "uint64")
INTEGERS, FLOATS = (*SIGNED, *UNSIGNED), ("float32", "float64")
OK, OUT_OF_MEMORY = 0, 2


def run(body, arrays, *, n):
    """The status of a function over the arrays (by name, with their dtypes) and n."""
    buffers = tuple(
        Buffer(name, (N,), array.dtype.name, name.lower()) for name, array in arrays.items()
    )
    params = (*(Param(buffer.handle, "handle") for buffer in buffers), Param("n", "int64"))
    flat = Module("flat", (Function("main", params, tuple(body), buffers=buffers),), "main")
    return run_native(flat, list(arrays.values()), n).status


def evaluate(make, *operands, result):
    """The elements of make(operands) as scalars; vectors of four must give the same."""
    count = -(-len(operands[0]) // LANES) * LANES
    padded = [np.resize(operand, count) for operand in operands]
    outputs = []
    for lanes, where, steps in (("", ROW, count), (f"x{LANES}", RUN, count // LANES)):
        arrays = {f"X{number}": array for number, array in enumerate(padded)}
        loads = [
            Load(name, (where,), f"{array.dtype.name}{lanes}") for name, array in arrays.items()
        ]
        arrays["OUT"] = np.zeros(count, result)
        store = Store("OUT", (where,), make(*loads))
        assert run([For("i", ZERO, index(steps), (store,))], arrays, n=count) == OK
        outputs.append(arrays["OUT"])
    np.testing.assert_array_equal(outputs[0], outputs[1])
    return outputs[0][: len(operands[0])]


def edges(dtype):
    """Extreme values of a dtype."""
    if dtype in FLOATS:
        least = np.finfo(dtype).tiny
        return np.array([0.0, -0.0, 1.5, -2.5, 7, -7, 1e30, least, np.inf, -np.inf, np.nan], dtype)
    limits = np.iinfo(dtype)
    values = [0, 1, 2, 3, 7, 8, limits.bits - 1, limits.bits, limits.max - 1, limits.max]
    if limits.min < 0:
        values += [limits.min, limits.min + 1, -1, -2, -3, -8]
    return np.array(values, dtype)


def pairs(dtype):
    all_pairs = np.array(list(product(edges(dtype), repeat=2)), dtype)
    return all_pairs[:, 0].copy(), all_pairs[:, 1].copy()


def wrapped(value, dtype):
    """A Python integer wrapped to so many bits, as in C."""
    bits = np.iinfo(dtype).bits
    value %= 1 << bits
    return value - (1 << bits) if dtype in SIGNED and value >> (bits - 1) else value


def shifted(x, count, *, bits, left):
    if not 0 <= count < bits:
        return -1 if x < 0 and not left else 0
    return x << count if left else x >> count


INTEGER_OPS = {
    "add": lambda x, y, bits: x + y,
    "sub": lambda x, y, bits: x - y,
    "mul": lambda x, y, bits: x * y,
    "floordiv": lambda x, y, bits: x // y if y else 0,
    "floormod": lambda x, y, bits: x % y if y else 0,
    "min": lambda x, y, bits: min(x, y),
    "max": lambda x, y, bits: max(x, y),
    "bitand": lambda x, y, bits: x & y,
    "bitor": lambda x, y, bits: x | y,
    "bitxor": lambda x, y, bits: x ^ y,
    "shl": lambda x, y, bits: shifted(x, y, bits=bits, left=True),
    "shr": lambda x, y, bits: shifted(x, y, bits=bits, left=False),
}


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("op", INTEGER_OPS)
def test_integers_wrap_and_nothing_is_undefined(op, dtype):
    left, right = pairs(dtype)
    result = evaluate(lambda x, y: Binary(op, x, y), left, right, result=dtype)
    bits = np.iinfo(dtype).bits
    numbers = zip(left.tolist(), right.tolist(), strict=True)
    assert result.tolist() == [wrapped(INTEGER_OPS[op](x, y, bits), dtype) for x, y in numbers]


@pytest.mark.parametrize("divisor", [1, 2, 8, 3, 10, 0, -1, -4])
@pytest.mark.parametrize("op", ["floordiv", "floormod"])
def test_divisors_that_are_known(op, divisor):
    values = edges("int64")
    literal = index(divisor)

    def make(x):
        return Binary(op, x, Broadcast(literal, Lanes(LANES)) if x.dtype[-2:] == "x4" else literal)

    expected = [wrapped(INTEGER_OPS[op](x, divisor, 64), "int64") for x in values.tolist()]
    assert evaluate(make, values, result="int64").tolist() == expected


FLOAT_OPS = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "min": np.minimum,
    "max": np.maximum,
}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("op", FLOAT_OPS)
def test_floats_are_as_numpys(op, dtype):
    left, right = pairs(dtype)
    result = evaluate(lambda x, y: Binary(op, x, y), left, right, result=dtype)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(result, FLOAT_OPS[op](left, right))


COMPARISONS = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "uint8", "float32", "float64"])
@pytest.mark.parametrize("op", COMPARISONS)
def test_comparisons_know_signs_and_nan(op, dtype):
    left, right = pairs(dtype)
    result = evaluate(lambda x, y: Compare(op, x, y), left, right, result="bool")
    np.testing.assert_array_equal(result, COMPARISONS[op](left, right))


BOOLS = {
    "and": np.logical_and,
    "or": np.logical_or,
    "bitand": np.logical_and,
    "bitor": np.logical_or,
    "bitxor": np.logical_xor,
    "min": np.logical_and,
    "max": np.logical_or,
}


@pytest.mark.parametrize("op", BOOLS)
def test_bools_are_bytes_in_memory_and_bits_elsewhere(op):
    left, right = np.array([0, 0, 1, 1], bool), np.array([0, 1, 0, 1], bool)
    result = evaluate(lambda x, y: Binary(op, x, y), left, right, result="bool")
    np.testing.assert_array_equal(result, BOOLS[op](left, right))
    np.testing.assert_array_equal(result.view("uint8") <= 1, True)


def test_operations_of_one_operand():
    for dtype in ("int32", "int64", "uint16", "float64"):
        values = edges(dtype)
        with np.errstate(over="ignore"):
            result = evaluate(lambda x: Unary("neg", x), values, result=dtype)
            np.testing.assert_array_equal(result, -values)
    values = edges("int16")
    result = evaluate(lambda x: Unary("bitnot", x), values, result="int16")
    np.testing.assert_array_equal(result, ~values)
    values = np.array([False, True])
    result = evaluate(lambda x: Unary("not", x), values, result="bool")
    np.testing.assert_array_equal(result, ~values)


def cast(value, dtype):
    """A number cast by the rules of the language."""
    if dtype in FLOATS or dtype == "bool":
        with np.errstate(over="ignore"):
            return np.array(value).astype(dtype).item()
    if isinstance(value, float):
        limits = np.iinfo(dtype)
        return 0 if np.isnan(value) else int(min(max(value, limits.min), limits.max))
    return wrapped(int(value), dtype)


@pytest.mark.parametrize("target", ["bool", "int8", "uint16", "int32", "int64", *FLOATS])
@pytest.mark.parametrize("source", ["bool", "int8", "uint8", "int32", "uint32", "int64", *FLOATS])
def test_casts_wrap_integers_and_saturate_floats(source, target):
    values = np.array([False, True]) if source == "bool" else edges(source)
    lanes = {False: target, True: f"{target}x{LANES}"}
    result = evaluate(lambda x: Cast(lanes[x.dtype[-2:] == "x4"], x), values, result=target)
    expected = [cast(value, target) for value in values.tolist()]
    np.testing.assert_array_equal(result, np.array(expected, target))


def test_math_functions():
    values = np.array([0.0, 1.5, 2.25, 1e10, -2.5, np.inf, np.nan])
    for name, function in (("abs", np.abs), ("floor", np.floor), ("ceil", np.ceil)):
        result = evaluate(lambda x, name=name: Call(name, (x,), x.dtype), values, result="float64")
        np.testing.assert_array_equal(result, function(values))
    roots = np.abs(values)
    result = evaluate(lambda x: Call("sqrt", (x,), x.dtype), roots, result="float64")
    np.testing.assert_array_equal(result, np.sqrt(roots))
    x, y, z = np.array([3.0, -2.0]), np.array([5.0, 7.0]), np.array([0.5, -0.25])
    result = evaluate(lambda *xyz: Call("fma", xyz, xyz[0].dtype), x, y, z, result="float64")
    np.testing.assert_array_equal(result, x * y + z)
    for dtype in ("int32", "uint32"):
        result = evaluate(lambda x: Call("abs", (x,), x.dtype), edges(dtype), result=dtype)
        np.testing.assert_array_equal(result, np.abs(edges(dtype)))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_functions_of_bits(dtype):
    values = edges(dtype)
    width = values.itemsize * 8
    patterns = [int(value) & (2**width - 1) for value in values]
    expected = {
        "popcount": [pattern.bit_count() for pattern in patterns],
        "ctz": [(f"1{pattern:0{width}b}"[::-1]).index("1") for pattern in patterns],
    }
    for name, wanted in expected.items():
        result = evaluate(lambda x, name=name: Call(name, (x,), x.dtype), values, result=dtype)
        np.testing.assert_array_equal(result, np.array(wanted, dtype))


def test_a_choice_evaluates_both_sides_or_one():
    x, y = np.arange(8.0), np.arange(8.0)[::-1].copy()
    result = evaluate(lambda a, b: Select(Compare("lt", a, b), b, a), x, y, result="float64")
    np.testing.assert_array_equal(result, np.maximum(x, y))
    outside = Load("X", (mul(ROW, index(1000)),), "float64")
    value = IfThenElse(Compare("eq", ROW, ZERO), outside, constant(9, "float64"))
    arrays = {"X": np.array([5.0]), "OUT": np.zeros(3)}
    assert run([For("i", ZERO, index(3), (Store("OUT", (ROW,), value),))], arrays, n=3) == OK
    assert arrays["OUT"].tolist() == [5, 9, 9]


def test_scalar_accesses_that_do_not_happen_touch_nothing():
    is_first = Compare("eq", ROW, ZERO)
    far = mul(ROW, index(1 << 40))
    rest = constant(7, "float32")
    load = Load("X", (far,), "float32", is_first, rest)
    stores = (Store("OUT", (ROW,), load), Store("X", (far,), constant(2, "float32"), is_first))
    arrays = {"X": np.array([5], "float32"), "OUT": np.zeros(3, "float32")}
    assert run([For("i", ZERO, index(3), stores)], arrays, n=3) == OK
    assert (arrays["X"].tolist(), arrays["OUT"].tolist()) == ([2], [5, 7, 7])


def test_few_lanes_are_gathered_one_by_one():
    """Through an index array, and with indices that are computed from lanes."""
    position = Load("P", (RUN,), "int32x4")
    twice = Binary("mul", Cast("int64x4", position), Broadcast(index(2), Lanes(LANES)))
    where = Unary("neg", Unary("neg", twice))
    arrays = {
        "X": np.arange(20.0),
        "P": np.array([3, 0, 7, 7, 1, 9, 2, 4], "int32"),
        "OUT": np.zeros(8),
    }
    store = Store("OUT", (RUN,), Load("X", (where,), "float64x4"))
    assert run([For("i", ZERO, index(2), (store,))], arrays, n=20) == OK
    np.testing.assert_array_equal(arrays["OUT"], arrays["X"][2 * arrays["P"]])


def test_few_lanes_are_scattered_one_by_one():
    """In the order of the lanes, also where the index array has a last dimension of one element."""
    row = Ramp(mul(ROW, index(LANES)), index(1), Lanes(LANES))
    position = Load("P", (row,), "int32x4")
    where = Cast("int64x4", position)
    arrays = {
        "X": np.arange(1.0, 9.0),
        "P": np.array([3, 0, 7, 7, 1, 9, 2, 4], "int32"),
        "OUT": np.zeros(10),
    }
    store = Store("OUT", (where,), Load("X", (row,), "float64x4"))
    assert run([For("i", ZERO, index(2), (store,))], arrays, n=10) == OK
    assert arrays["OUT"].tolist() == [2, 5, 7, 1, 8, 0, 0, 4, 0, 6]


@pytest.mark.parametrize(
    ("op", "dtype"),
    [
        *(("add", dtype) for dtype in ("int32", "uint64", "float32")),
        *(("mul", dtype) for dtype in ("int32", "float64")),
        *((op, dtype) for op in ("min", "max") for dtype in ("int32", "uint32", "float64")),
        *((op, "bool") for op in ("and", "or")),
    ],
)
def test_lanes_are_reduced(op, dtype):
    values = np.array([3, -2, 5, 1]).astype(dtype)
    ufunc = {"and": np.logical_and, "or": np.logical_or, **FLOAT_OPS}[op]
    load = Load("X", (Ramp(ZERO, index(1), Lanes(LANES)),), f"{dtype}x4")
    arrays = {"X": values, "OUT": np.zeros(1, dtype)}
    assert run([Store("OUT", (ZERO,), LaneReduce(op, load))], arrays, n=4) == OK
    assert arrays["OUT"][0] == ufunc.reduce(values)


def accumulate_into(buffer):
    """OUT[i] = buffer[i] + 1, twice, through an allocated buffer."""
    at = Load("T", (ROW,), "float64")
    more = Store("T", (ROW,), Binary("add", at, constant(1, "float64")))
    return [Allocate(buffer), For("i", ZERO, N, (more, more, Store("OUT", (ROW,), at)))]


@pytest.mark.parametrize(
    "shape", [(index(50),), (index(40_000),), (N,)], ids=["stack", "large", "symbolic"]
)
def test_new_memory_holds_zeros(shape):
    arrays = {"OUT": np.full(50, -1.0)}
    assert run(accumulate_into(Buffer("T", shape, "float64")), arrays, n=50) == OK
    np.testing.assert_array_equal(arrays["OUT"], 2)


@pytest.mark.parametrize(
    "shape", [(N, N, N), (mul(N, index(1 << 20)),)], ids=["overflow", "too much"]
)
def test_memory_that_is_not_there_is_a_status(shape):
    buffer = Buffer("T", shape, "float64")
    store = Store("T", (ZERO,) * len(shape), constant(1, "float64"))
    assert run([Allocate(buffer), store], {"OUT": np.zeros(1)}, n=1 << 40) == OUT_OF_MEMORY


def test_memory_of_no_extent_is_memory():
    for extent in (0, -3):
        assert run([Allocate(Buffer("T", (N, N), "float64"))], {"OUT": np.zeros(1)}, n=extent) == OK


REFUSED = {
    "llvm.scope.shared": Allocate(Buffer("T", (index(4),), "float32", scope="shared")),
    "llvm.call.exp": Store("OUT", (ZERO,), Call("exp", (constant(1, "float64"),), "float64")),
    "llvm.if_then_else.vector": Store(
        "OUT",
        (RUN,),
        IfThenElse(
            Broadcast(Const("bool", "True"), Lanes(LANES)),
            Broadcast(constant(1, "float64"), Lanes(LANES)),
            Broadcast(constant(2, "float64"), Lanes(LANES)),
        ),
    ),
    "llvm.floormod": Store(
        "OUT", (ZERO,), Binary("floormod", constant(1, "float64"), Load("OUT", (N,), "float64"))
    ),
}


@pytest.mark.parametrize("code", REFUSED)
def test_what_is_not_lowered_is_refused_by_name(code):
    with pytest.raises(UnsupportedError) as caught:
        run([For("i", ZERO, add(N, index(0)), (REFUSED[code],))], {"OUT": np.zeros(4)}, n=1)
    assert caught.value.code == code
