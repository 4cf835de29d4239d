"""Rewritten programs of products compute with factors, by the interpreter."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from gossamer.operator_calls.operator_program import Variant, module_of
from gossamer.operator_calls.rewrites.remove_inits import remove_inits
from gossamer.operator_calls.rewrites.scale_values import scale_values
from gossamer.operator_calls.rewrites.separate_inits import separate_inits
from gossamer.operators.spmm import PROGRAM as SPMM
from gossamer.operators.spmv import PROGRAM as SPMV
from gossamer_ir.interpret import run

DENSE = np.array([[0, 2, 3], [0, 0, 0], [4, 0, 5], [1, 1, 1]], np.float32)


def arguments(program):
    matrix = sparse.csr_array(DENSE)
    operand = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
    out = np.full((4, 2), 7, np.float32)
    names = ("b", "c") if program is SPMM else ("x", "y")
    arrays = (operand, out) if program is SPMM else (operand[:, 0].copy(), out[:, 0].copy())
    sizes = {"m": 4, "n": 3, "nnz": matrix.nnz}
    sizes |= {"feat_size": 2} if program is SPMM else {}
    structure = {"a": matrix.data, "indptr": matrix.indptr, "indices": matrix.indices}
    return {**structure, **dict(zip(names, arrays, strict=True)), **sizes}, arrays


@pytest.mark.parametrize("program", [SPMM, SPMV])
def test_a_factor_multiplies_each_value(program):
    module = scale_values(module_of(program, Variant()), handle="a", factor="alpha")
    kernel_arguments, (operand, out) = arguments(program)
    run(module, {**kernel_arguments, "alpha": np.array([3], np.float32)})
    np.testing.assert_array_equal(out, 3 * (DENSE @ operand))


@pytest.mark.parametrize("program", [SPMM, SPMV])
def test_without_inits_the_sums_are_added_to_the_output(program):
    kernel_arguments, (operand, out) = arguments(program)
    run(remove_inits(module_of(program, Variant())), kernel_arguments)
    np.testing.assert_array_equal(out, 7 + DENSE @ operand)


@pytest.mark.parametrize("program", [SPMM, SPMV])
def test_separate_inits_set_all_rows_to_zero_first(program):
    kernel_arguments, (operand, out) = arguments(program)
    run(separate_inits(module_of(program, Variant())), kernel_arguments)
    np.testing.assert_array_equal(out, DENSE @ operand)
