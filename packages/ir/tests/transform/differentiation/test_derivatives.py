"""The table of derivatives: every function of floats is in it, with the slope that differences show."""

import numpy as np
import pytest
from gradient_checks import checked_gradients

from gossamer_ir.core.math_functions import FUNCTIONS as MATH
from gossamer_ir.core.operations import BINARY_KINDS
from gossamer_ir.interpret import run
from gossamer_ir.script import parse_module, print_module
from gossamer_ir.transform.differentiation.adjoint_function import adjoint_module
from gossamer_ir.transform.differentiation.derivatives import (
    DERIVATIVES_OF_FUNCTIONS,
    DERIVATIVES_OF_OPERATIONS,
    FUNCTIONS_WITHOUT_DERIVATIVE,
    OPERATIONS_WITHOUT_DERIVATIVE,
)

PRECISIONS = {"tf32"}
"""Functions whose values have steps, which their slope ignores."""


def test_each_function_of_floats_has_a_derivative_or_is_refused():
    float_operations = {
        name for name, each in MATH.items() if each.operands in ("floats", "numbers")
    }
    assert {*DERIVATIVES_OF_FUNCTIONS, *FUNCTIONS_WITHOUT_DERIVATIVE} == float_operations


def test_each_operation_of_floats_has_a_derivative_or_is_refused():
    float_operations = {
        op for op, of in BINARY_KINDS.items() if of.operands in ("floats", "numbers", "any")
    }
    assert {*DERIVATIVES_OF_OPERATIONS, *OPERATIONS_WITHOUT_DERIVATIVE} == float_operations


def module_with_value(expr, names):
    matched = "\n".join(
        f'    {name} = T.sp.match_buffer({name.lower()}, (I,), "float64")' for name in [*names, "Y"]
    )
    handles = "".join(f"{name.lower()}: T.handle, " for name in [*names, "Y"])
    return parse_module(f"""
@T.prim_func
def f({handles}m: T.int64) -> None:
    T.func_attr({{"sparse_tir_level": 2}})
    I = T.sp.dense_fixed(m)
{matched}
    with T.sp.iteration([I], "S", "f") as [i]:
        Y[i] = {expr}
""")


@pytest.mark.parametrize("name", sorted(DERIVATIVES_OF_FUNCTIONS.keys() - PRECISIONS))
def test_the_slope_of_a_function_is_that_of_its_values(name):
    names = ["A", "B", "C"][: MATH[name].arity]
    call = f"T.{name}({', '.join(f'{each}[i]' for each in names)})"
    rng = np.random.default_rng(2)
    arguments = {each.lower(): rng.uniform(0.4, 1.7, 5) for each in names}
    checked_gradients(module_with_value(call, names), {**arguments, "y": np.zeros(5), "m": 5})


def test_a_precision_passes_gradients_on():
    module = adjoint_module(module_with_value("T.tf32(A[i]) * B[i]", ["A", "B"]))
    text = print_module(module)
    assert "A_grad[i] = Y_grad[i] * B[i]" in text
    assert "B_grad[i_1] = T.tf32(A[i_1]) * Y_grad[i_1]" in text


@pytest.mark.parametrize("name", ["tanh", "sigmoid", "sin", "abs", "expm1"])
def test_the_slope_of_a_function_of_negative_values_is_right(name):
    arguments = {"a": np.array([-2.0, -0.3, 0.7]), "y": np.zeros(3), "m": 3}
    checked_gradients(module_with_value(f"T.{name}(A[i])", ["A"]), arguments)


@pytest.mark.parametrize(
    "expr",
    [
        "A[i] + B[i]",
        "A[i] - B[i]",
        "A[i] * B[i]",
        "A[i] / B[i]",
        "T.max(A[i], B[i])",
        "T.min(A[i], B[i])",
        "-A[i] * -B[i]",
    ],
)
def test_the_slope_of_an_operation_is_that_of_its_values(expr):
    arguments = {"a": np.array([-2.0, 1.3, 0.7]), "b": np.array([1.5, -0.4, 0.6])}
    checked_gradients(module_with_value(expr, ["A", "B"]), {**arguments, "y": np.zeros(3), "m": 3})


def gradients_at(expr, values):
    """The gradients where differences say nothing."""
    module = module_with_value(expr, [*values])
    size = len(next(iter(values.values())))
    passed = {name.lower(): np.array(each) for name, each in values.items()}
    results = {f"{name.lower()}_grad": np.zeros(size) for name in values}
    run(adjoint_module(module), {**passed, **results, "y_grad": np.ones(size), "m": size})
    return [result.tolist() for result in results.values()]


def test_equal_operands_share_the_gradient_of_their_maximum():
    assert gradients_at("T.max(A[i], B[i])", {"A": [1.0, 2.0], "B": [1.0, 1.0]}) == [
        [0.5, 1.0],
        [0.5, 0.0],
    ]


def test_a_power_of_zero_and_a_zeroth_power_have_finite_gradients():
    values = {"A": [0.0, 0.0, 2.0], "B": [0.0, 2.0, 0.0]}
    assert gradients_at("T.pow(A[i], B[i])", values) == [[0.0, 0.0, 0.0], [0.0, 0.0, np.log(2.0)]]


def test_the_slope_of_an_absolute_value_is_zero_at_zero():
    assert gradients_at("T.abs(A[i])", {"A": [0.0, -0.0, -3.0]}) == [[0.0, 0.0, -1.0]]


def test_a_value_that_is_not_chosen_contributes_nothing_even_if_its_slope_is_infinite():
    assert gradients_at("T.Select(A[i] > 0.0, T.sqrt(A[i]), 0.0)", {"A": [0.0, 4.0]}) == [
        [0.0, 0.25]
    ]
