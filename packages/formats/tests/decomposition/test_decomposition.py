"""Matrices in parts: their values, and programs that are rewritten for the parts."""

from __future__ import annotations

import numpy as np
import pytest
from decomposed_matrices import matrix
from scipy.sparse import csr_array

from gossamer_formats import decompose, from_scipy
from gossamer_ir.errors import ArgumentError, FormatError
from gossamer_testkit.conformance.composable_formats import SPMV_SCRIPT

LOOPS = """
@T.prim_func
def empty(n: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    T.evaluate(0)
"""


def test_values_are_updated_through_the_permutations():
    stored = matrix()
    decomposition = decompose(from_scipy(stored), "hyb", c=2, k=2)
    values = np.arange(stored.nnz, dtype=np.float32)
    updated = decomposition.with_values(values)
    stored.data = values
    assert np.array_equal(updated.toarray(), stored.toarray())
    assert all(
        new.tensor.arrays["indices"] is old.tensor.arrays["indices"]
        for new, old in zip(updated.parts, decomposition.parts, strict=True)
    )
    with pytest.raises(ArgumentError, match="expected") as caught:
        decomposition.with_values(values[1:])
    assert caught.value.code == "decomposition.values"


def test_a_program_is_rewritten_for_the_parts():
    decomposition = decompose(matrix(), "hyb", c=2, k=2)
    program = decomposition.rewrite(SPMV_SCRIPT)
    (function,) = program.functions
    assert [stmt.name for stmt in function.body] == [
        "spmv_init",
        *(f"spmv_{part.name}" for part in decomposition.parts),
    ]
    handles = {param.name for param in function.params if param.dtype == "handle"}
    names = {param.name for param in function.params}
    assert names == {"x", "y", "m", "n", *decomposition.arguments}
    assert "data_p0b0" in handles
    assert "width_p0b0" not in names


def test_parts_without_common_rows_are_declared_whether_they_initialize_or_add():
    stored = from_scipy(csr_array(np.array([[1, 0, 0], [1, 1, 1]], np.float32)))
    decomposition = decompose(stored, "hyb", k=2)
    lines = SPMV_SCRIPT.splitlines()
    first = next(number for number, line in enumerate(lines) if "T.init()" in line)
    adding = "\n".join(lines[:first] + lines[first + 2 :])
    declared = [
        decomposition.rewrite(program, at_once=True).functions[0].relations
        for program in (SPMV_SCRIPT, adding)
    ]
    assert declared[0] == declared[1]
    assert {relation.kind for relation in declared[1]} == {"disjoint"}
    # Where parts are computed one after the other, it is not needed.
    assert decomposition.rewrite(adding).functions[0].relations == ()


def test_a_program_that_looks_up_elements_is_refused():
    decomposition = decompose(matrix(), "hyb")
    with pytest.raises(FormatError, match="looks up elements") as caught:
        decomposition.rewrite(SPMV_SCRIPT.replace("A[i, j] * X[j]", "A[i, j] * A[i, 0]"))
    assert caught.value.code == "format.program"
    with pytest.raises(FormatError, match="'Z' is not a sparse buffer"):
        decomposition.rewrite(SPMV_SCRIPT, "Z")
    with pytest.raises(FormatError, match="1 function of the loop stage"):
        decomposition.rewrite(LOOPS)


def test_the_values_of_parts_have_another_dtype():
    stored = matrix()
    decomposition = from_scipy(stored).asformat("hyb", c=2).astype(np.float64)
    assert decomposition.dtype == np.float64
    assert np.array_equal(decomposition.toarray(), stored.toarray())


def test_an_element_in_two_parts_is_found():
    decomposition = from_scipy(matrix()).asformat("hyb", k=2)
    decomposition.parts = (*decomposition.parts, decomposition.parts[0]._replace(name="again"))
    with pytest.raises(FormatError, match=r"is in the parts 'p0b\d' and 'again'") as caught:
        decomposition.check()
    assert caught.value.code == "format.parts"
