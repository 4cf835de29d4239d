"""The forms of arrays that are used without a copy are the same wherever arrays are checked.

Four pieces of code check arrays, three of which are straight-line code for speed. The table says what each
does with an array in every form: it uses the array itself, leaves it to slower code, copies or refuses it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from scipy import sparse

import gossamer as gs
from gossamer.operator_calls.fast_path.plan_arguments import matrix_arguments
from gossamer.operator_calls.operands.dense_operands import dense_operand
from gossamer_backend.call.native_plan import fixed_arguments
from gossamer_ir.errors import ArgumentError
from gossamer_testkit.examples import SCALE

SIZE = 6


def misaligned(array):
    memory = np.zeros(array.nbytes + 1, np.uint8)[1:].view(array.dtype)
    memory[:] = array
    return memory


def strided(array):
    return np.repeat(array, 2)[::2]


def read_only(array):
    array.setflags(write=False)
    return array


class Subclass(np.ndarray):
    pass


class Form(NamedTuple):
    """The fate of an array in this form: "use", "copy", "refuse", or "leave" to slower code."""

    make: object
    kernel: str
    plan: str
    structure: str
    operand: str


FORMS = {
    "plain": Form(lambda array: array, "use", "use", "use", "use"),
    "read-only": Form(read_only, "use", "use", "use", "use"),
    "strided": Form(strided, "refuse", "leave", "leave", "copy"),
    "misaligned": Form(misaligned, "refuse", "leave", "leave", "copy"),
    "other byte order": Form(lambda array: array.astype(">f4"), "refuse", "leave", "leave", "copy"),
    "other dtype": Form(lambda array: array.astype("i4"), "refuse", "leave", "leave", "refuse"),
    "subclass": Form(lambda array: array.view(Subclass), "use", "leave", "leave", "use"),
    "masked": Form(np.ma.masked_array, "refuse", "leave", "leave", "refuse"),
    "list": Form(list, "refuse", "leave", "leave", "refuse"),
}


@pytest.fixture(scope="module")
def kernel():
    """A kernel of an array `x` and a result `y`."""
    return gs.compile(SCALE)


def array_in(form):
    return FORMS[form].make(np.arange(SIZE, dtype=np.float32))


@pytest.mark.parametrize("form", FORMS)
def test_a_kernel_uses_or_refuses_the_array(form, kernel):
    out = np.empty(SIZE, np.float32)
    if FORMS[form].kernel == "refuse":
        with pytest.raises(ArgumentError):
            kernel(x=array_in(form), y=out)
    else:
        kernel(x=array_in(form), y=out)
        np.testing.assert_array_equal(out, 2 * np.arange(SIZE))


@pytest.mark.parametrize("form", FORMS)
def test_a_plan_uses_the_array_or_declines(form, kernel):
    (size,) = (param.name for param in kernel.signature.scalars)
    plan = kernel.plan(pointers=(), scalars=(size,), passed=("x", "y"))
    result = plan.run(fixed_arguments((), (SIZE,)), (array_in(form),), None)
    assert (result is not None) == (FORMS[form].plan == "use")


@pytest.mark.parametrize("form", FORMS)
def test_the_fast_path_uses_the_array_or_declines(form):
    matrix = sparse.csr_array(np.eye(SIZE, dtype=np.float32))
    matrix.data = array_in(form)
    assert (matrix_arguments(matrix) is not None) == (FORMS[form].structure == "use")


@pytest.mark.parametrize("form", FORMS)
def test_an_operator_uses_copies_or_refuses_the_array(form):
    array = array_in(form)
    if FORMS[form].operand == "refuse":
        with pytest.raises(ArgumentError):
            dense_operand("B", array, dtype="float32", shape=(SIZE,))
        return
    result = dense_operand("B", array, dtype="float32", shape=(SIZE,))
    assert np.shares_memory(result, array) == (FORMS[form].operand == "use")
    np.testing.assert_array_equal(result, np.arange(SIZE, dtype=np.float32))
