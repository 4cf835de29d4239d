"""The interpreter evaluates every kind of expression exactly in its dtype."""

import math
from fractions import Fraction
from itertools import product
from typing import get_args

import numpy as np
import pytest

from gossamer_ir.core.build import index, index_var
from gossamer_ir.core.constants import constant
from gossamer_ir.core.dtypes import SCALARS, DType
from gossamer_ir.core.expression_kinds import dtype_of
from gossamer_ir.core.math_functions import FUNCTIONS
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.interpret import InterpreterError, run
from gossamer_ir.interpret.expressions.expression_translators import EXPR_TRANSLATIONS
from gossamer_ir.interpret.expressions.math_values import MATH_FUNCTIONS
from gossamer_ir.interpret.expressions.operators import BINARY, COMPARE, UNARY
from gossamer_ir.interpret.memory.levels import AXIS_LEVELS
from gossamer_ir.interpret.statements.statement_translators import STMT_TRANSLATIONS
from gossamer_ir.nodes import (
    Axis,
    Binary,
    BinaryOp,
    Broadcast,
    Buffer,
    Call,
    Cast,
    Compare,
    CompareOp,
    Expr,
    Function,
    IfThenElse,
    LaneReduce,
    Lanes,
    Load,
    Module,
    Param,
    Ramp,
    ReduceOp,
    Reinterpret,
    Search,
    Select,
    Stmt,
    Store,
    TransposeReduce,
    Unary,
    UnaryOp,
    Var,
    VScale,
)

STORAGE = {"bfloat16": "uint16"}
NAN = math.nan


def evaluate(expr, *, vscale=1, **arrays):
    """The value of an expression that reads int64 arrays by name, as a scalar or an array."""
    dtype = DType.parse(dtype_of(expr))
    lanes = dtype.lanes * (vscale if dtype.scalable else 1)
    out = np.zeros(lanes, STORAGE.get(dtype.scalar, dtype.scalar))
    zero = index(0)
    place = Ramp(zero, index(1), Lanes(dtype.lanes, dtype.scalable)) if dtype.is_vector else zero
    buffers = [Buffer("Out", (index(lanes),), dtype.scalar, "out")]
    buffers += [Buffer(name, (index(a.size),), "int64", name.lower()) for name, a in arrays.items()]
    body = (Store("Out", (place,), expr),)
    params = tuple(Param(buffer.handle, "handle") for buffer in buffers)
    function = Function("main", params, body, buffers=tuple(buffers))
    inputs = {name.lower(): array for name, array in arrays.items()}
    run(Module("flat", (function,), "main"), {"out": out, **inputs}, vscale=vscale)
    return out if dtype.is_vector else out[0]


def binary(op, lhs, rhs, dtype="int32"):
    return evaluate(Binary(op, constant(lhs, dtype), constant(rhs, dtype)))


TABLES = [
    (EXPR_TRANSLATIONS, Expr),
    (STMT_TRANSLATIONS, Stmt),
    (AXIS_LEVELS, Axis),
]


@pytest.mark.parametrize(("table", "union"), TABLES, ids=["expressions", "statements", "axes"])
def test_every_kind_of_node_has_its_function(table, union):
    assert set(table) == set(get_args(union))


@pytest.mark.parametrize(
    ("table", "literal"), [(UNARY, UnaryOp), (BINARY, BinaryOp), (COMPARE, CompareOp)]
)
def test_every_operator_has_its_function(table, literal):
    assert set(table) == set(get_args(literal))


def test_every_math_function_and_reducer_has_its_function():
    assert set(FUNCTIONS) == MATH_FUNCTIONS
    assert set(get_args(ReduceOp)) <= set(BINARY)


INTEGERS = [
    ("add", 2**31 - 1, 1, -(2**31)),
    ("sub", -(2**31), 1, 2**31 - 1),
    ("mul", 2**16, 2**16 + 3, 3 * 2**16),
    ("floordiv", -7, 2, -4),
    ("floordiv", 7, -2, -4),
    ("floordiv", -(2**31), -1, -(2**31)),
    ("floormod", -7, 2, 1),
    ("floormod", 7, -2, -1),
    ("min", -1, 1, -1),
    ("max", -1, 1, 1),
    ("bitand", 6, 3, 2),
    ("bitor", 6, 3, 7),
    ("bitxor", 6, 3, 5),
    ("shl", 1, 31, -(2**31)),
    ("shr", -8, 1, -4),
]


@pytest.mark.parametrize(("op", "lhs", "rhs", "expected"), INTEGERS)
def test_integers_wrap_and_round_to_minus_infinity(op, lhs, rhs, expected):
    assert binary(op, lhs, rhs) == expected


UNSIGNED = [("sub", 0, 1, 255), ("add", 250, 10, 4), ("shr", 128, 7, 1), ("mul", 16, 17, 16)]


@pytest.mark.parametrize(("op", "lhs", "rhs", "expected"), UNSIGNED)
def test_unsigned_integers_wrap(op, lhs, rhs, expected):
    assert binary(op, lhs, rhs, "uint8") == expected


FLOATS = [
    ("add", 2.0**24, 1.0, 2.0**24),
    ("sub", math.inf, math.inf, NAN),
    ("mul", 0.0, math.inf, NAN),
    ("div", 1.0, 3.0, np.float32(1) / np.float32(3)),
    ("div", 1.0, 0.0, math.inf),
    ("floordiv", -7.0, 2.0, -4.0),
    ("floormod", -7.0, 2.0, 1.0),
    ("min", NAN, 1.0, NAN),
    ("min", 1.0, NAN, NAN),
    ("max", NAN, 1.0, NAN),
    ("max", 1.0, 2.0, 2.0),
]


@pytest.mark.parametrize(("op", "lhs", "rhs", "expected"), FLOATS)
def test_floats_round_to_float32(op, lhs, rhs, expected):
    np.testing.assert_array_equal(binary(op, lhs, rhs, "float32"), np.float32(expected))


@pytest.mark.parametrize("dtype", ["int64", "uint8"])
@pytest.mark.parametrize("op", ["floordiv", "floormod"])
def test_an_integer_divided_by_zero_is_zero(op, dtype):
    assert binary(op, 1, 0, dtype) == 0


SHIFTS = [
    ("shl", 1, 32, 0), ("shl", 1, -1, 0), ("shr", 5, 32, 0), ("shr", -5, 32, -1),
    ("shr", -5, -1, -1), ("shr", -5, 1, -3), ("shl", -1, 31, -(2**31)),
]  # fmt: skip


@pytest.mark.parametrize(("op", "value", "amount", "expected"), SHIFTS)
def test_a_shift_by_all_bits_leaves_the_sign(op, value, amount, expected):
    assert binary(op, value, amount) == expected


def test_bools_and_comparisons():
    true, false = constant(True, "bool"), constant(False, "bool")
    assert not evaluate(Binary("and", true, false))
    assert evaluate(Binary("or", true, false))
    assert evaluate(Unary("not", false))
    one, nan = constant(1.0, "float64"), constant(NAN, "float64")
    results = [bool(evaluate(Compare(op, one, nan))) for op in get_args(CompareOp)]
    assert results == [False, True, False, False, False, False]
    two = constant(2.0, "float64")
    results = [bool(evaluate(Compare(op, one, two))) for op in get_args(CompareOp)]
    assert results == [False, True, True, True, False, False]


def test_unary_operators():
    assert evaluate(Unary("neg", constant(-128, "int8"))) == -128
    assert math.copysign(1, evaluate(Unary("neg", constant(0.0, "float32")))) == -1
    assert evaluate(Unary("bitnot", constant(5, "uint8"))) == 250


CASTS = [
    ("int32", -2.9, "float64", -2),
    ("uint8", 300, "int32", 44),
    ("int64", 255, "uint8", 255),
    ("bool", NAN, "float32", True),
    ("bool", 0.0, "float32", False),
    ("float32", 2**24 + 1, "int64", 2.0**24),
    ("float16", 70000.0, "float32", math.inf),
]


@pytest.mark.parametrize(("dtype", "value", "source", "expected"), CASTS)
def test_casts(dtype, value, source, expected):
    assert evaluate(Cast(dtype, constant(value, source))) == expected


def test_both_sides_of_select_are_evaluated_and_one_of_if_then_else():
    zero, one = index(0), index(1)
    crash = index_var("undefined")
    true = constant(True, "bool")
    assert evaluate(IfThenElse(true, one, crash)) == 1
    assert evaluate(IfThenElse(Unary("not", true), crash, one)) == 1
    with pytest.raises(InterpreterError):
        evaluate(Select(true, one, crash))
    assert evaluate(Select(Unary("not", true), zero, one)) == 1


FUNCTION_CASES = [
    ("exp", (1.0,), math.e),
    ("exp2", (-3.0,), 0.125),
    ("expm1", (1e-9,), 1.0000000005e-9),
    ("log", (math.e,), 1.0),
    ("log2", (0.125,), -3.0),
    ("log10", (1e-3,), -3.0),
    ("log1p", (1e-9,), 0.9999999995e-9),
    ("rsqrt", (16.0,), 0.25),
    ("rsqrt", (0.0,), math.inf),
    ("sigmoid", (0.0,), 0.5),
    ("sigmoid", (-80.0,), math.exp(-80.0)),
    ("trunc", (-2.5,), -2.0),
    ("log", (-1.0,), NAN),
    ("sqrt", (2.0,), math.sqrt(2)),
    ("tanh", (0.5,), math.tanh(0.5)),
    ("erf", (0.5,), math.erf(0.5)),
    ("sin", (0.5,), math.sin(0.5)),
    ("cos", (0.5,), math.cos(0.5)),
    ("floor", (-0.5,), -1.0),
    ("ceil", (0.5,), 1.0),
    ("round", (2.5,), 2.0),
    ("pow", (2.0, 0.5), math.sqrt(2)),
    ("abs", (-3.5,), 3.5),
    ("fma", (2.0, 3.0, 4.0), 10.0),
    ("tf32", (1 + 2.0**-11,), 1 + 2.0**-10),
    ("tf32", (-1 - 2.0**-12,), -1.0),
    ("tf32", (-math.inf,), -math.inf),
    ("tf32", (NAN,), NAN),
]


@pytest.mark.parametrize(("name", "args", "expected"), FUNCTION_CASES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_math_functions(name, args, expected, dtype):
    call = Call(name, tuple(constant(arg, dtype) for arg in args), dtype)
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(evaluate(call), expected, rtol=2 * eps, atol=0)


BIT_CASES = [
    ("popcount", (0b1011,), {"int8": 3, "uint16": 3, "int64": 3}),
    ("popcount", (-1,), {"int8": 8, "int32": 32, "int64": 64}),
    ("popcount", (2**64 - 1,), {"uint64": 64}),
    ("ctz", (0b1000,), {"int8": 3, "uint32": 3, "int64": 3}),
    ("ctz", (0,), {"int8": 8, "uint16": 16, "int64": 64}),
    ("ctz", (-(2**63),), {"int64": 63}),
    ("find_nth_bit", (0b10110, 0), {"uint8": 1, "int64": 1}),
    ("find_nth_bit", (0b10110, 2), {"uint8": 4, "int64": 4}),
    ("find_nth_bit", (0b10110, 3), {"uint8": 8, "int32": 32}),
    ("find_nth_bit", (-1, 63), {"int64": 63}),
    ("find_nth_bit", (-1, -1), {"int64": 64}),
    ("find_nth_bit", (0, 0), {"uint16": 16, "uint64": 64}),
]

COUNTING = [name for name, function in FUNCTIONS.items() if function.counts_bits]


@pytest.mark.parametrize(("name", "args", "expected"), BIT_CASES)
def test_functions_of_bits(name, args, expected):
    for dtype, count in expected.items():
        call = Call(name, tuple(constant(arg, dtype) for arg in args), dtype)
        assert evaluate(call) == count


@pytest.mark.parametrize("dtype", [name for name in SCALARS if DType(name).is_integer])
@pytest.mark.parametrize("name", COUNTING)
def test_a_number_of_bits_is_at_least_0_and_at_most_the_bits_of_the_dtype(name, dtype):
    info, bits = np.iinfo(dtype), DType(dtype).bits
    operands = {*range(max(info.min, -2), 4), bits - 1, bits, info.min, info.max - 1, info.max}
    for values in product(sorted(operands), repeat=FUNCTIONS[name].arity):
        call = Call(name, tuple(constant(value, dtype) for value in values), dtype)
        assert 0 <= evaluate(call) <= bits, values


def test_functions_of_bits_work_in_lanes():
    lanes = Ramp(index(0), index(1), Lanes(4))
    counts = evaluate(Call("popcount", (lanes,), "int64x4"))
    np.testing.assert_array_equal(counts, [0, 1, 1, 2])


def test_every_math_function_is_among_the_cases():
    assert {name for name, _, _ in (*FUNCTION_CASES, *BIT_CASES)} == set(FUNCTIONS)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_fma_rounds_once(dtype):
    """Compared with exact fractions: the result is the nearest of its neighbors."""
    rng = np.random.default_rng(3)
    for a, b, c in rng.normal(size=(40, 3)).astype(dtype):
        c = np.asarray(-a * b, dtype)[()] if rng.random() < 0.5 else c
        args = tuple(constant(float(x), dtype) for x in (a, b, c))
        result = evaluate(Call("fma", args, dtype))
        exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
        neighbors = [result, *(np.nextafter(result, result.dtype.type(s)) for s in (-9, 9))]
        errors = [abs(Fraction(float(x)) - exact) for x in neighbors]
        assert errors[0] == min(errors)


def test_fma_of_infinities_and_overflow():
    def fma(*args):
        return evaluate(Call("fma", tuple(constant(arg, "float64") for arg in args), "float64"))

    assert math.isnan(fma(math.inf, 0.0, 1.0))
    assert fma(1e308, 10.0, -math.inf) == -math.inf
    assert fma(1e308, 10.0, 0.0) == math.inf
    assert math.copysign(1, fma(-0.0, 1.0, -0.0)) == -1


BFLOAT = [
    (1.0, 0x3F80),
    (1.00390625, 0x3F80),
    (1.01171875, 0x3F82),
    (-math.inf, 0xFF80),
    (NAN, 0x7FC0),
    (3.4e38, 0x7F80),
]


@pytest.mark.parametrize(("value", "bits"), BFLOAT)
def test_bfloat16_is_stored_as_the_upper_half_of_a_float32(value, bits):
    assert evaluate(Cast("bfloat16", constant(value, "float64"))) == bits


def test_bfloat16_is_rounded_once_and_after_every_operation():
    just_above_a_tie = 1.00390625 + 2.0**-40
    assert evaluate(Cast("bfloat16", constant(just_above_a_tie, "float64"))) == 0x3F81
    large, one = constant(256.0, "bfloat16"), constant(1.0, "bfloat16")
    back = Binary("sub", Binary("add", large, one), large)
    assert evaluate(Cast("float32", back)) == 0.0


def test_vectors():
    four = Lanes(4)
    ramp = Ramp(index(3), index(-2), four)
    np.testing.assert_array_equal(evaluate(ramp), [3, 1, -1, -3])
    twos = Broadcast(constant(2, "int64"), four)
    np.testing.assert_array_equal(evaluate(Binary("mul", ramp, twos)), [6, 2, -2, -6])
    positive = Compare("gt", ramp, Broadcast(index(0), four))
    np.testing.assert_array_equal(evaluate(Select(positive, ramp, twos)), [3, 1, 2, 2])
    halves = Cast("float32x4", ramp)
    np.testing.assert_array_equal(evaluate(halves), np.float32([3, 1, -1, -3]))
    absolute = Call("abs", (ramp,), "int64x4")
    np.testing.assert_array_equal(evaluate(absolute), [3, 1, 1, 3])
    roots = Call("fma", (halves, halves, halves), "float32x4")
    np.testing.assert_array_equal(evaluate(roots), np.float32([12, 2, 0, 6]))


REDUCTIONS = [("add", 10), ("mul", 24), ("min", 1), ("max", 4)]


@pytest.mark.parametrize(("op", "expected"), REDUCTIONS)
def test_lanes_are_reduced(op, expected):
    assert evaluate(LaneReduce(op, Ramp(index(1), index(1), Lanes(4)))) == expected


@pytest.mark.parametrize(("op", "expected"), [("and", False), ("or", True)])
def test_lanes_of_bools_are_reduced(op, expected):
    ramp = Ramp(index(0), index(1), Lanes(4))
    some = Compare("eq", ramp, Broadcast(index(2), Lanes(4)))
    assert evaluate(LaneReduce(op, some)) == expected


@pytest.mark.parametrize(
    ("op", "ufunc"), [("add", "sum"), ("mul", "prod"), ("min", "min"), ("max", "max")]
)
@pytest.mark.parametrize(("values", "lanes"), [(2, 2), (4, 2), (2, 8), (16, 16)])
def test_lanes_of_several_vectors_are_reduced(op, ufunc, values, lanes):
    ramps = [Ramp(index(at - 3), index(2 - at), Lanes(lanes)) for at in range(values)]
    numbers = np.array(
        [[at - 3 + (2 - at) * lane for lane in range(lanes)] for at in range(values)]
    )
    reduced = evaluate(TransposeReduce(op, tuple(ramps)))
    np.testing.assert_array_equal(reduced, getattr(numbers, ufunc)(axis=1))
    assert reduced.dtype == np.int64


@pytest.mark.parametrize("vscale", [1, 2, 4])
def test_lanes_of_several_scalable_vectors_are_reduced(vscale):
    ramps = [Ramp(index(at), index(1), Lanes(2, True)) for at in range(4)]
    reduced = evaluate(TransposeReduce("add", tuple(ramps)), vscale=vscale)
    lanes = np.arange(2 * vscale)
    assert reduced.tolist() == [(at + lanes).sum() for at in range(4)]


@pytest.mark.parametrize("vscale", [1, 2, 4])
def test_scalable_vectors_have_as_many_lanes_as_the_machine(vscale):
    ramp = Ramp(index(0), index(1), Lanes(2, True))
    assert evaluate(LaneReduce("add", ramp), vscale=vscale) == sum(range(2 * vscale))
    assert evaluate(VScale(), vscale=vscale) == vscale
    np.testing.assert_array_equal(evaluate(ramp, vscale=vscale), range(2 * vscale))


def test_a_vector_cannot_choose_a_side():
    some = Compare("eq", Ramp(index(0), index(1), Lanes(2)), Ramp(index(0), index(1), Lanes(2)))
    sides = Broadcast(index(0), Lanes(2))
    with pytest.raises(UnsupportedError) as caught:
        evaluate(IfThenElse(some, sides, sides))
    assert caught.value.code == "interpret.vector_condition"


SEARCHES = [
    ("exact", 5, 0, 6, 2),
    ("exact", 5, 3, 6, 3),
    ("exact", 6, 0, 6, -1),
    ("exact", 5, 4, 4, -1),
    ("lower", 5, 0, 6, 2),
    ("lower", 6, 0, 6, 4),
    ("lower", 99, 1, 5, 5),
    ("lower", 0, 2, 2, 2),
    ("upper", 5, 0, 6, 4),
    ("upper", 1, 0, 6, 1),
    ("upper", 9, 0, 6, 6),
]


@pytest.mark.parametrize(("kind", "value", "begin", "end", "expected"), SEARCHES)
def test_searches(kind, value, begin, end, expected):
    elements = np.array([1, 3, 5, 5, 7, 9])
    search = Search(kind, "X", (), index(begin), index(end), index(value))
    assert evaluate(search, X=elements) == expected


def test_a_search_stays_in_the_buffer():
    search = Search("lower", "X", (), index(0), index(4), index(1))
    with pytest.raises(InterpreterError, match=r"X\[3\].*\(3,\)"):
        evaluate(search, X=np.arange(3))


def test_a_variable_without_a_value_is_an_error():
    with pytest.raises(InterpreterError, match="'x'"):
        evaluate(Var("x", "int64"))


def test_gathers_and_predicated_loads():
    lanes = Lanes(3)
    every_other = Ramp(index(0), index(2), lanes)
    elements = np.array([10, 11, 12, 13])
    far = Load("X", (every_other,), "int64x3")
    with pytest.raises(InterpreterError, match=r"X\[4\]"):
        evaluate(far, X=elements)
    inside = Compare("lt", every_other, Broadcast(index(4), lanes))
    rest = Broadcast(index(-1), lanes)
    masked = Load("X", (every_other,), "int64x3", inside, rest)
    np.testing.assert_array_equal(evaluate(masked, X=elements), [10, 12, -1])
    absent = Load("X", (index(9),), "int64", constant(False, "bool"), index(-5))
    assert evaluate(absent, X=elements) == -5


def test_a_pointer_is_the_address_of_its_first_element():
    array = np.arange(4)
    address = Reinterpret("int64", Var("x", "handle"))
    assert evaluate(address, X=array) == array.ctypes.data
    assert evaluate(address, X=array[1:]) == array.ctypes.data + 8
