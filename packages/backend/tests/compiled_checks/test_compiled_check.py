"""The generated check of index arrays: interpreted against a slow oracle, and used in place of NumPy's."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from msgspec.structs import replace

from gossamer_backend import Artifact, GeneratedCheck, NativeKernel
from gossamer_backend.call.abi import prototype
from gossamer_backend.compiled_checks.array_test import ArrayTest
from gossamer_backend.compiled_checks.check_program import program_of_checks
from gossamer_ir.core.build import index
from gossamer_ir.errors import ArgumentError, UnsupportedError
from gossamer_ir.interchange.kernel_abi import OK, OUT_OF_BOUNDS
from gossamer_ir.interchange.records import BufferParam, ScalarParam, Signature
from gossamer_ir.interpret import GuardFailed, run
from gossamer_ir.nodes import InRange, Monotone, PaddedSlots, SortedSegments


def signature_of(module):
    """The signature, as of a flat module."""
    function = module.functions[0]
    by_handle = {buffer.handle: buffer for buffer in function.buffers}
    buffers = tuple(
        BufferParam(handle, buffer.name, buffer.dtype, buffer.shape, is_read=True, is_written=False)
        for handle, buffer in by_handle.items()
    )
    scalars = (param for param in function.params if param.name not in by_handle)
    return Signature(
        function.name,
        buffers,
        tuple(ScalarParam(param.name, param.dtype) for param in scalars),
        tuple(param.name for param in function.params),
    )


class Asked:
    """Compiles programs by interpreting them, and counts the programs."""

    def __init__(self):
        self.names = []

    def __call__(self, name, program):
        module = program()
        self.names.append(name)
        signature = signature_of(module)
        checked = tuple(param.buffer for param in signature.buffers)

        @prototype(signature)
        def interpret(*arguments):
            sizes = dict(zip(signature.order, arguments[:-1], strict=True))
            for param in signature.buffers:
                size = sizes[f"n{param.name[1:]}"]
                kind = np.ctypeslib.as_ctypes_type(np.dtype(param.dtype))
                array = (kind * size).from_address(sizes[param.name]) if size else []
                sizes[param.name] = np.array(array, param.dtype)
            try:
                run(module, sizes)
            except GuardFailed as error:
                arguments[-1].contents.failed_buffer = checked.index(error.buffer)
                return OUT_OF_BOUNDS
            return OK

        address = ctypes.cast(interpret, ctypes.c_void_p).value
        artifact = Artifact("toy", "1", "toy", signature, b"", checked)
        return NativeKernel(artifact, address, keep_alive=(interpret,))


FACTS = (InRange("X", index(0), index(9)), SortedSegments("X", "P", True), Monotone("P"))


def arrays_of(indptr, indices):
    return {"P": np.array(indptr, np.int32), "X": np.array(indices, np.int32)}


def test_one_kernel_serves_all_arrays_of_the_same_dtypes():
    asked = Asked()
    check = GeneratedCheck(asked, max_numpy_elements=-1)
    assert check(FACTS, {}, arrays_of([0, 2, 4], [0, 3, 1, 2]))
    assert not check(FACTS, {}, arrays_of([0, 2, 4], [3, 0, 1, 2]))
    assert not check(FACTS, {}, arrays_of([0, 2, 4], [0, 9, 1, 2]))
    assert not check(FACTS, {}, arrays_of([0, 2, 3], [0, 3, 1, 2]))
    assert len(asked.names) == 1
    wide = {name: array.astype(np.int64) for name, array in arrays_of([0, 1], [2]).items()}
    assert check(FACTS, {}, wide)
    assert len(set(asked.names)) == 2


def test_small_arrays_and_empty_ranges_and_wide_pads_are_left_to_others():
    asked = Asked()
    assert not GeneratedCheck(asked, max_numpy_elements=6)(
        FACTS, {}, arrays_of([0, 2, 3], [0, 3, 1])
    )
    assert asked.names == []
    check, x = GeneratedCheck(asked, max_numpy_elements=-1), {"X": np.array([[0, 1]], np.int8)}
    assert not check((InRange("X", index(4), index(4)),), {}, x)
    padded = (SortedSegments("X", None, True), PaddedSlots("X", index(300)))
    assert not check(padded, {}, x)
    assert check((SortedSegments("X", None, True), PaddedSlots("X", index(100))), {}, x)


def test_a_target_that_cannot_compile_it_is_asked_once():
    asked = []

    def refuse(name, program):
        asked.append(name)
        raise UnsupportedError("llvm.toy", "Nothing is compiled here.")

    check = GeneratedCheck(refuse, max_numpy_elements=-1)
    for _ in range(2):
        assert not check(FACTS, {}, arrays_of([0, 1], [2]))
    assert len(asked) == 1


def test_a_kernel_asks_its_check_and_names_the_culprit_itself():
    plain = Asked()("", lambda: program_of_checks((ArrayTest("int32"),)))
    param = replace(plain.signature.buffers[0], facts=(InRange("X0", index(0), index(3)),))
    signature = replace(plain.signature, buffers=(param,))
    artifact = replace(plain.artifact, signature=signature)
    address = ctypes.cast(plain.function, ctypes.c_void_p).value
    kernel = NativeKernel(artifact, address, keep_alive=(plain,))
    questions, answers = [], [True, False]

    def check(facts, scalars, arrays):
        questions.append((facts, dict(scalars), list(arrays)))
        return answers.pop(0)

    kernel.set_fact_checker(check)
    kernel(np.array([5], np.int32))  # taken at its word
    with pytest.raises(ArgumentError, match="Element 0 of 'x0' is 5"):
        kernel(np.array([5], np.int32))
    assert questions[0] == (param.facts, {"n0": 1}, ["X0"])
