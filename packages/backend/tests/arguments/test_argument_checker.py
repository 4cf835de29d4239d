"""Invalid kernel arguments are rejected before any code of the kernel runs."""

import re

import numpy as np
import pytest

from gossamer_backend.arguments.argument_checker import ArgumentChecker
from gossamer_ir.core.build import add, index, index_var, mul
from gossamer_ir.errors import ArgumentError, InternalError, UnsupportedError
from gossamer_ir.interchange.records import BufferParam, ScalarParam, Signature
from gossamer_ir.nodes import InRange, Load, Monotone, SortedSegments

M, N, K = index_var("m"), index_var("n"), index_var("k")
NNZ = Load("J_indptr", (M,), "int32")


def buffer(name, shape, dtype="float32", *, written=False, facts=(), of=None):
    return BufferParam(
        name, of or name.upper(), dtype, shape, is_read=True, is_written=written, facts=facts
    )


INDPTR_FACTS = (
    InRange("J_indptr", index(0), add(index_var("nnz"), index(1))),
    Monotone("J_indptr"),
)
INDICES_FACTS = (InRange("J_indices", index(0), N), SortedSegments("J_indices", "J_indptr", True))
SPMM = Signature(
    "csrmm",
    (
        buffer("a", (index_var("nnz"),)),
        buffer("b", (N, K)),
        buffer("c", (M, K), written=True),
        buffer("indptr", (add(M, index(1)),), "int32", facts=INDPTR_FACTS, of="J_indptr"),
        buffer("indices", (index_var("nnz"),), "int32", facts=INDICES_FACTS, of="J_indices"),
    ),
    tuple(ScalarParam(name, "int64") for name in ("m", "n", "k", "nnz")),
    ("a", "b", "c", "indptr", "indices", "m", "n", "k", "nnz"),
)


def operands(**changes):
    """A 3 x 4 matrix with 5 nonzeros, times a 4 x 2 matrix."""
    arguments = {
        "a": np.ones(5, np.float32),
        "b": np.ones((4, 2), np.float32),
        "c": np.zeros((3, 2), np.float32),
        "indptr": np.array([0, 2, 2, 5], np.int32),
        "indices": np.array([0, 3, 0, 1, 2], np.int32),
    }
    return arguments | changes


def misaligned(shape, dtype):
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    return np.zeros(size + 1, np.uint8)[1:].view(dtype).reshape(shape)


def read_only(array):
    array.setflags(write=False)
    return array


SHARED = np.zeros(14, np.float32)


class OnDevice:
    __cuda_array_interface__ = {  # noqa: RUF012
        "shape": (4, 2),
        "typestr": "<f4",
        "data": (4096, False),
        "version": 3,
    }


REFUSED = {
    "a list": ({"a": [1.0] * 5}, "kernel.array", "'a' has the type 'list'; expected an array"),
    "None": ({"a": None}, "kernel.array", "'a' has the type 'NoneType'"),
    "a GPU array": ({"b": OnDevice()}, "kernel.device", "'b' is on the device 'cuda:0'"),
    "a masked array": ({"b": np.ma.ones((4, 2), np.float32)}, "kernel.array", "filled"),
    "another dtype": (
        {"a": np.ones(5)},
        "kernel.dtype",
        "'a' has dtype float64; expected float32. Convert it with a.astype('float32').",
    ),
    "another byte order": ({"a": np.ones(5, ">f4")}, "kernel.dtype", "'a' has dtype >f4"),
    "wider indices": ({"indices": np.zeros(5, np.int64)}, "kernel.dtype", "has dtype int64"),
    "a Fortran array": (
        {"b": np.asfortranarray(np.ones((4, 2), np.float32))},
        "kernel.contiguity",
        "shape (4, 2) and strides (4, 16)",
    ),
    "every second element": ({"a": np.ones(10, np.float32)[::2]}, "kernel.contiguity", "'a'"),
    "odd addresses": ({"a": misaligned(5, np.float32)}, "kernel.alignment", "multiple of 4 bytes"),
    "a read-only output": (
        {"c": read_only(np.zeros((3, 2), np.float32))},
        "kernel.read_only",
        "'c' is read-only, and the kernel writes to it",
    ),
    "a transposed operand": (
        {"b": np.ones((2, 4), np.float32), "n": 4, "k": 2},
        "kernel.shape",
        "'b' has shape (2, 4); expected (4, 2), that is (n, k)",
    ),
    "an output with a row too many": (
        {"c": np.zeros((4, 2), np.float32), "m": 3},
        "kernel.shape",
        "'c' has shape (4, 2); expected (3, 2), that is (m, k)",
    ),
    "a flat array of another size": (
        {"b": np.ones(9, np.float32), "n": 4, "k": 2},
        "kernel.shape",
        "'b' has shape (9,); expected (4, 2)",
    ),
    "a flat array that gives no size": (
        {"b": np.ones(8, np.float32), "c": np.zeros(6, np.float32), "k": None},
        "kernel.arguments",
        "The size 'n' is missing, and the array 'b' of shape (8,) does not give it. "
        "Pass an array with 2 dimensions, or the size.",
    ),
    "values and indices of two lengths": ({"a": np.ones(6, np.float32)}, "kernel.shape", "(5,)"),
    "an output inside an input": (
        {"b": SHARED[:8].reshape(4, 2), "c": SHARED[7:13].reshape(3, 2)},
        "kernel.overlap",
        "'c', which is written, shares memory with 'b'",
    ),
    "a negative size": ({"n": -4}, "kernel.negative_size", "'n' is -4; expected at least 0"),
    "a size beyond all memory": ({"n": 2**60}, "kernel.large_size", "'n' is 1152921504606846976"),
    "a size of no integer": ({"n": 4.0}, "kernel.scalar", "'n' is 4.0 of type float"),
    "a size beyond int64": ({"n": 2**63}, "kernel.scalar_range", "9223372036854775808"),
    "an unknown name": ({"x": 1}, "kernel.arguments", "'x' is not a parameter of the kernel"),
    "an index of a column too far": (
        {"indices": np.array([0, 3, 0, 1, 4], np.int32)},
        "kernel.range",
        "Element 4 of 'indices' is 4; expected a value from 0 to 3",
    ),
    "a negative index": (
        {"indices": np.array([-1, 3, 0, 1, 2], np.int32)},
        "kernel.range",
        "Element 0 of 'indices' is -1",
    ),
    "a decreasing indptr": (
        {"indptr": np.array([0, 3, 2, 5], np.int32)},
        "kernel.monotone",
        "Element 2 of 'indptr' is 2, which is less than the one before it, 3",
    ),
    "an indptr beyond the nonzeros": (
        {"indptr": np.array([0, 2, 2, 6], np.int32)},
        "kernel.range",
        "Element 3 of 'indptr' is 6; expected a value from 0 to 5",
    ),
    "an unsorted row": (
        {"indices": np.array([3, 0, 0, 1, 2], np.int32)},
        "kernel.sorted",
        "Element 1 of 'indices' is 0, which is less than the one before it in its segment, 3",
    ),
    "a duplicate": (
        {"indices": np.array([0, 3, 0, 0, 2], np.int32)},
        "kernel.unique",
        "Element 3 of 'indices' is 0, which is equal to",
    ),
}


@pytest.mark.parametrize(("changes", "code", "text"), REFUSED.values(), ids=REFUSED.keys())
def test_bad_operands_are_refused_in_one_sentence(changes, code, text):
    with pytest.raises(ArgumentError, match=re.escape(text)) as caught:
        ArgumentChecker(SPMM).check((), operands(**changes))
    assert caught.value.code == code


def test_good_operands_give_every_parameter():
    arguments = operands()
    values = ArgumentChecker(SPMM).check((), arguments).values
    assert {name: values[name] for name in ("m", "n", "k", "nnz")} == {
        "m": 3, "n": 4, "k": 2, "nnz": 5,
    }  # fmt: skip
    assert all(values[name] is arguments[name] for name in arguments)


def test_an_output_without_elements_shares_no_memory():
    b, nothing = np.ones((4, 2), np.float32), np.zeros(0, np.float32)
    inside = np.ndarray((0, 2), np.float32, buffer=b, offset=8)
    arguments = operands(a=nothing, b=b, c=inside, indptr=np.zeros(1, np.int32))
    arguments["indices"] = np.zeros(0, np.int32)
    assert ArgumentChecker(SPMM).check((), arguments).values["m"] == 0


def test_operands_may_be_given_in_order():
    arguments = operands()
    values = ArgumentChecker(SPMM).check((*arguments.values(), 3), {"k": 2}).values
    assert (values["m"], values["c"] is arguments["c"]) == (3, True)


def test_arguments_are_counted():
    check = ArgumentChecker(SPMM).check
    with pytest.raises(
        ArgumentError, match="The number of positional arguments is 10; expected at most 9"
    ):
        check((0,) * 10, {})
    with pytest.raises(ArgumentError, match="'a' is given by position and by name"):
        check((operands()["a"],), operands())
    with pytest.raises(ArgumentError, match="'c' is missing"):
        check((), {name: value for name, value in operands().items() if name != "c"})
    with pytest.raises(ArgumentError, match="'nothing' is not a parameter"):
        check((), operands(), verified=("nothing",))


def test_verified_arrays_are_not_read():
    wrong = np.full(5, 99, np.int32)
    values = ArgumentChecker(SPMM).check((), operands(indices=wrong), verified=("indices",)).values
    assert values["indices"] is wrong


def test_sizes_of_a_flat_array_must_be_given():
    flat = operands(b=np.ones(8, np.float32), c=np.zeros(6, np.float32))
    with pytest.raises(ArgumentError, match="'n' is missing"):
        ArgumentChecker(SPMM).check((), flat)
    values = ArgumentChecker(SPMM).check((), flat | {"n": 4, "k": 2}).values
    assert values["b"].shape == (8,)


@pytest.mark.parametrize("rows", [0, 3])
def test_empty_arrays_are_accepted(rows):
    empty = {
        "a": np.zeros(0, np.float32),
        "b": np.zeros((0, 0), np.float32),
        "c": np.zeros((rows, 0), np.float32),
        "indptr": np.zeros(rows + 1, np.int32),
        "indices": np.zeros(0, np.int32),
    }
    values = ArgumentChecker(SPMM).check((), empty).values
    assert [values[name] for name in ("m", "n", "k", "nnz")] == [rows, 0, 0, 0]


def test_arrays_that_touch_do_not_overlap():
    memory = np.zeros(14, np.float32)
    arguments = operands(b=memory[:8].reshape(4, 2), c=memory[8:].reshape(3, 2))
    assert ArgumentChecker(SPMM).check((), arguments).values["c"] is arguments["c"]


def test_inputs_may_share_memory_and_be_read_only():
    arguments = operands(b=read_only(np.ones((4, 2), np.float32)))
    arguments["a"] = read_only(arguments["b"].reshape(-1)[:5])
    assert ArgumentChecker(SPMM).check((), arguments).values["a"] is arguments["a"]


def test_subclasses_that_are_plain_memory_are_accepted(tmp_path):
    mapped = np.memmap(tmp_path / "b", np.float32, mode="w+", shape=(4, 2))
    assert ArgumentChecker(SPMM).check((), operands(b=mapped)).values["b"] is mapped


BLOCKS = Signature(
    "blocks",
    (buffer("x", (mul(index_var("blocks"), index(4)),)),),
    (ScalarParam("blocks", "int64"),),
    ("x", "blocks"),
)


def test_a_flat_buffer_takes_an_array_shaped_by_fixed_dimensions():
    blocks = np.zeros((3, 2, 2), np.float32)
    assert ArgumentChecker(BLOCKS).check((blocks,), {}).values["blocks"] == 3
    with pytest.raises(ArgumentError, match="'blocks' is missing"):
        ArgumentChecker(BLOCKS).check((np.zeros(5, np.float32),), {})


BY_LAST_OFFSET = Signature(
    "last",
    (
        buffer("x", (NNZ,)),
        buffer("indptr", (add(M, index(1)),), "int32", of="J_indptr"),
    ),
    (ScalarParam("m", "int64"),),
    ("x", "indptr", "m"),
)


def test_a_size_may_be_the_last_offset():
    indptr = np.array([0, 1, 4], np.int32)
    assert (
        ArgumentChecker(BY_LAST_OFFSET).check((np.zeros(4, np.float32), indptr), {}).values["m"]
        == 2
    )
    with pytest.raises(ArgumentError, match=re.escape("'x' has shape (5,); expected (4,)")):
        ArgumentChecker(BY_LAST_OFFSET).check((np.zeros(5, np.float32), indptr), {})
    with pytest.raises(ArgumentError, match="element 7 of 'J_indptr', which has 3 elements"):
        ArgumentChecker(BY_LAST_OFFSET).check((np.zeros(4, np.float32), indptr), {"m": 7})


def test_arrays_that_numpy_has_not_are_refused_by_name():
    with pytest.raises(UnsupportedError, match="float32x4") as caught:
        ArgumentChecker(Signature("f", (buffer("x", (N,), "float32x4"),), (), ("x",)))
    assert caught.value.code == "backend.array_dtype"


def test_arrays_of_bfloat16_are_those_of_uint16():
    checker = ArgumentChecker(
        Signature("f", (buffer("x", (N,), "bfloat16"),), (ScalarParam("n", "int64"),), ("x", "n"))
    )
    bits = np.array([0x3F80, 0xC000], np.uint16)
    assert checker.check((bits,), {"n": 2}).values["x"] is bits
    with pytest.raises(ArgumentError, match="has dtype float16; expected uint16"):
        checker.check((bits.view(np.float16),), {"n": 2})


def test_facts_about_another_name_of_an_array_are_checked():
    facts = (InRange("ALIAS", index(0), index(5)), SortedSegments("X", None, True))
    param = buffer("x", (N,), "int32", facts=facts)
    checker = ArgumentChecker(Signature("f", (param,), (ScalarParam("n", "int64"),), ("x", "n")))
    assert checker.check((np.array([1, 4], np.int32),), {}).values["n"] == 2
    with pytest.raises(ArgumentError, match="Element 1 of 'x' is 5"):
        checker.check((np.array([1, 5], np.int32),), {})


def test_a_signature_with_unknown_sizes_is_a_bug():
    with pytest.raises(InternalError, match=r"\{'n'\}, which are not parameters"):
        ArgumentChecker(Signature("f", (buffer("x", (N,)),), (), ("x",)))
