"""Dense operands and outputs: which arrays kernels take as they are, which are copied, which are refused."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer.operator_calls.operands.dense_operands import (
    dense_operand,
    number_operand,
    operand_dtype,
    output_array,
    require_shape,
)
from gossamer_ir.errors import ArgumentError

FLOAT32 = np.dtype("float32")
MATRIX = np.arange(6, dtype=np.float32).reshape(2, 3)


def operand(value, *, dtype="float32", shape=(2, 3)):
    return dense_operand("B", value, dtype=dtype, shape=shape)


def test_an_array_that_kernels_accept_is_passed_as_it_is():
    assert operand(MATRIX) is MATRIX
    assert operand(MATRIX, shape=(None, 3)) is MATRIX


class Named(np.ndarray):
    """A subclass that has the same elements as any array."""


def misaligned(array):
    memory = np.empty(array.nbytes + 1, np.uint8)[1:]
    result = memory.view(array.dtype).reshape(array.shape)
    result[...] = array
    return result


COPIED = {
    "another byte order": MATRIX.astype(">f4"),
    "columns": np.asfortranarray(MATRIX),
    "every second row": np.repeat(MATRIX, 2, axis=0)[::2],
    "an odd address": misaligned(MATRIX),
    "a subclass": MATRIX.view(Named),
}


@pytest.mark.parametrize("value", COPIED.values(), ids=COPIED)
def test_other_arrays_of_the_dtype_become_plain_ones(value):
    result = operand(value)
    assert type(result) is np.ndarray
    assert result.dtype == FLOAT32
    assert result.flags.c_contiguous
    assert result.flags.aligned
    np.testing.assert_array_equal(result, MATRIX)


REFUSED = {
    "a list": (MATRIX.tolist(), "operand.kind", "the type 'list'; expected a NumPy array"),
    "a mask": (np.ma.masked_array(MATRIX), "operand.kind", "MaskedArray"),
    "another dtype": (MATRIX.astype("float64"), "operand.dtype", "float64, the matrix float32"),
    "another length": (MATRIX[:, :2], "operand.shape", "(2, 2); expected (2, 3)"),
    "another number of dimensions": (MATRIX[0], "operand.shape", "(3,); expected (2, 3)"),
}


@pytest.mark.parametrize(("value", "code", "text"), REFUSED.values(), ids=REFUSED)
def test_other_operands_are_refused(value, code, text):
    with pytest.raises(ArgumentError) as caught:
        operand(value)
    assert caught.value.code == code
    assert text in str(caught.value)
    assert "'B'" in str(caught.value)


def test_the_dtype_of_an_operand_is_known_before_the_matrix():
    assert operand_dtype("B", MATRIX) == "float32"
    assert operand_dtype("B", MATRIX.astype(">f8")) == "float64"
    assert operand_dtype("B", MATRIX.tolist()) is None
    with pytest.raises(ArgumentError, match=r"'B' has the dtype int64; expected 'float32'|or"):
        operand_dtype("B", MATRIX.astype(np.int64))


@pytest.mark.parametrize("number", [2, 0.5, np.float32(3), float("inf"), True])
def test_a_number_is_an_array_of_one_element_that_nobody_can_write(number):
    array = number_operand("alpha", number, FLOAT32)
    assert array.tolist() == [float(number)]
    assert array.dtype == FLOAT32
    assert not array.flags.writeable


def test_the_sign_of_zero_is_kept():
    signs = [np.signbit(number_operand("alpha", zero, FLOAT32)[0]) for zero in (0.0, -0.0, 0.0)]
    assert signs == [False, True, False]


NUMBERS = [
    ("2", "operand.kind", "the type 'str'; expected a number"),
    (None, "operand.kind", "NoneType"),
    (10**400, "operand.range", "an int that no float64 can represent"),
    (1e39, "operand.range", "1e+39, which float32 cannot represent"),
]


@pytest.mark.parametrize(("number", "code", "text"), NUMBERS, ids=[text for *_, text in NUMBERS])
def test_what_is_not_a_number_of_the_dtype_is_refused(number, code, text):
    with pytest.raises(ArgumentError) as caught:
        number_operand("alpha", number, FLOAT32)
    assert caught.value.code == code
    assert text in str(caught.value)


def output(value, *, dtype="float32", shape=(2, 3), inputs=()):
    return output_array(value, dtype=dtype, shape=shape, inputs=inputs)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_without_out_the_result_is_a_new_array(dtype):
    result, written = output(None, dtype=dtype)
    assert result is written
    assert (result.dtype, result.shape) == (np.dtype(dtype), (2, 3))


def test_out_is_returned_as_it_was_passed():
    out = np.zeros((2, 3), np.float32).view(Named)
    result, written = output(out)
    assert result is out
    assert type(written) is np.ndarray
    assert np.may_share_memory(written, out)


READ_ONLY = np.zeros((2, 3), np.float32)
READ_ONLY.flags.writeable = False
OUTPUTS = {
    "a list": (MATRIX.tolist(), "operand.kind"),
    "a mask": (np.ma.masked_array(MATRIX), "operand.kind"),
    "another dtype": (MATRIX.astype("float64"), "operand.dtype"),
    "another byte order": (MATRIX.astype(">f4"), "operand.dtype"),
    "another shape": (MATRIX.T.copy(), "operand.shape"),
    "a read-only array": (READ_ONLY, "operand.read_only"),
    "an odd address": (misaligned(MATRIX), "operand.alignment"),
    "columns": (np.asfortranarray(MATRIX), "operand.contiguity"),
}


@pytest.mark.parametrize(("out", "code"), OUTPUTS.values(), ids=OUTPUTS)
def test_an_array_that_kernels_cannot_write_is_refused(out, code):
    with pytest.raises(ArgumentError, match="'out'") as caught:
        output(out)
    assert caught.value.code == code


def test_an_output_that_overlaps_an_input_is_refused():
    memory = np.zeros((3, 3), np.float32)
    output(memory[:2], inputs=[MATRIX])
    with pytest.raises(ArgumentError, match="overlaps an input") as caught:
        output(memory[:2], inputs=[MATRIX, memory[1:]])
    assert caught.value.code == "operand.overlap"


def test_a_shape_may_have_any_length_along_a_dimension():
    require_shape("x", MATRIX, shape=(None, 3))
    with pytest.raises(ArgumentError, match=r"expected \(any, 4\)"):
        require_shape("x", MATRIX, shape=(None, 4))
    with pytest.raises(ArgumentError, match=r"expected \(6,\)"):
        require_shape("x", MATRIX, shape=(6,))
