"""`lower_math`: where the arithmetic of math functions is placed, and which calls are kept."""

import numpy as np
import pytest

from gossamer_ir.core.build import constant, handle, index, index_var
from gossamer_ir.core.math_functions import FUNCTIONS, instructions_with
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.interpret import run
from gossamer_ir.nodes import (
    Binary,
    Buffer,
    Call,
    Cast,
    Function,
    IfThenElse,
    Let,
    Load,
    Module,
    ParallelFor,
    Param,
    Store,
)
from gossamer_ir.script import parse_module
from gossamer_ir.traversal.walk import walk
from gossamer_ir.verify import verify
from gossamer_lower import lower_math
from gossamer_lower.math.function_table import LOWERED

TARGET = frozenset({"sqrt", "abs"})
HEAD = """
@T.prim_func
def program(x: T.handle, y: T.handle, n: T.int64) -> None:
    T.stage("flat")
    X = T.match_buffer(x, (n,), "{dtype}")
    Y = T.match_buffer(y, (n,), "{dtype}")
"""


def module_of(*lines, dtype="float64"):
    return verify(
        parse_module(HEAD.format(dtype=dtype) + "\n".join(f"    {line}" for line in lines))
    )


def lowered(module):
    after = verify(lower_math(module, instructions=TARGET))
    names = {node.function for node in walk(after) if isinstance(node, Call)}
    assert names <= TARGET
    return after


def results(module, x):
    y = np.zeros_like(x)
    run(module, {"x": x, "y": y, "n": len(x)})
    return y


def test_functions_with_an_instruction_of_the_target_are_left_alone():
    module = module_of("for i in T.serial(n):", "    Y[i] = T.sqrt(T.abs(X[i])) + X[i] * 2.0")
    assert lower_math(module, instructions=TARGET) is module
    module = module_of("for i in T.serial(n):", "    Y[i] = T.exp(X[i])")
    assert lower_math(module, instructions={"exp"}) is module


def test_a_call_that_occurs_twice_in_a_statement_is_computed_once():
    once = lowered(module_of("for i in T.serial(n):", "    Y[i] = T.exp(X[i])"))
    twice = lowered(
        module_of("for i in T.serial(n):", "    Y[i] = T.exp(X[i]) + T.exp(X[i]) * T.exp(X[i])")
    )
    lets = [sum(isinstance(node, Let) for node in walk(module)) for module in (once, twice)]
    assert lets[0] == lets[1]


PROGRAMS = {
    "the side of a choice that is not taken": [
        "for i in T.serial(n + 3):",
        "    Y[T.min(i, n - 1)] = T.if_then_else(i < n, T.exp(X[i]), Y[n - 1])",
    ],
    "both sides of a choice": [
        "for i in T.serial(n):",
        "    Y[i] = T.if_then_else(i > 0, T.log(X[i - 1] + 3.0), T.exp(X[i + n - 1]))",
    ],
    "choices in choices": [
        "for i in T.serial(n + 3):",
        "    Y[T.min(i, n - 1)] = T.if_then_else(i < n, "
        "T.if_then_else(X[i] > 0.0, T.log(X[i]), T.exp(X[i])), Y[n - 1])",
    ],
    "a value stored under a predicate": [
        "for i in T.serial(n + 3):",
        "    T.store(Y, T.min(i, n - 1), value=T.exp(X[i]), predicate=i < n)",
    ],
    "a value read under a predicate": [
        "for i in T.serial(n):",
        "    Y[i] = T.load(X, T.int64(T.floor(X[i])), predicate=X[i] >= 0.0 and X[i] < 4.0, "
        "passthrough=T.exp(X[i]))",
    ],
    "the condition of a branch": [
        "for i in T.serial(n):",
        "    if T.exp(X[i]) > 1.0:",
        "        Y[i] = T.tanh(X[i])",
        "    else:",
        "        Y[i] = T.sin(X[i])",
    ],
    "the condition of while": [
        "Y[0] = 0.0",
        "while T.exp(Y[0]) < 9.0:",
        "    Y[0] = Y[0] + T.exp(0.5)",
    ],
    "calls of calls": ["for i in T.serial(n):", "    Y[i] = T.exp(T.sin(T.erf(X[i])))"],
    "a let": [
        "for i in T.serial(n):",
        "    z: T.float64 = T.exp(X[i])",
        "    Y[i] = z * z",
    ],
    "the extent of a loop": [
        "for i in T.serial(T.int64(T.round(T.exp(T.float64(1.6))))):",
        "    Y[i] = X[i] // 0.375 + X[i] % 0.375",
    ],
    "a condition that only holds inside": [
        "for i in T.serial(n + 2):",
        "    if i < n:",
        "        Y[i] = T.pow(X[i], 2.0)",
    ],
}


@pytest.mark.parametrize("lines", PROGRAMS.values(), ids=PROGRAMS)
def test_programs_mean_the_same(lines):
    module = module_of(*lines)
    x = np.array([0.5, -1.25, 3.0, 2.0, -0.75])
    np.testing.assert_allclose(results(lowered(module), x), results(module, x), rtol=1e-15)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_is_computed_in_float32(dtype):
    module = module_of("for i in T.serial(n):", "    Y[i] = T.exp(T.sqrt(X[i]))", dtype=dtype)
    after = lowered(module)
    calls = [node for node in walk(after) if isinstance(node, Call)]
    assert {node.dtype for node in calls} == {"float32"}
    assert any(isinstance(node, Cast) and node.dtype == dtype for node in walk(after))


def weighted(weight):
    x = Buffer("X", (index_var("n"),), "float64", "x")
    params = (Param("x", "handle"), Param("n", "int64"))
    zero = Store("X", (index_var("begin"),), constant(0, "float64"))
    bounds = (Param("begin", "int64"), Param("end", "int64"))
    rows = Function("rows", (*bounds, *params), (zero,), buffers=(x,))
    args = (handle("x"), index_var("n"))
    call = ParallelFor("rows", "i", index(0), index_var("n"), args, weight, index(1))
    return Module("flat", (Function("main", params, (call,), buffers=(x,)), rows), "main")


@pytest.mark.parametrize(
    "value",
    [
        Call("exp", (constant(1, "float64"),), "float64"),
        Binary("floordiv", *(constant(number, "float64") for number in (3, 2))),
    ],
)
def test_a_call_in_a_weight_is_refused_by_name(value):
    weight = Binary("mul", index_var("i"), Cast("int64", value))
    with pytest.raises(UnsupportedError) as caught:
        lower_math(weighted(weight), instructions=TARGET)
    assert caught.value.code == "lower.lower_math.unsupported_call"


def test_a_fused_product_of_float64_needs_its_instruction():
    module = module_of("for i in T.serial(n):", "    Y[i] = T.fma(X[i], X[i], 1.0)")
    with pytest.raises(UnsupportedError) as caught:
        lower_math(module, instructions=TARGET)
    assert caught.value.code == "lower.lower_math.unsupported_call"
    assert lower_math(module, instructions={"fma"}) is module


def test_a_choice_keeps_its_laziness_for_what_is_no_call():
    after = lowered(module_of(*PROGRAMS["the side of a choice that is not taken"]))
    guarded = [
        node
        for node in walk(after)
        if isinstance(node, IfThenElse) and any(isinstance(part, Load) for part in walk(node))
    ]
    assert guarded


def test_a_function_is_lowered_unless_all_cpus_have_an_instruction():
    assert set(FUNCTIONS) - instructions_with(()) == LOWERED & set(FUNCTIONS)
