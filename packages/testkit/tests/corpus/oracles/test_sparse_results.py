"""The oracles of sparse programs agree with SciPy, for every matrix of the table in its format."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from gossamer_testkit.corpus.inputs import format_inputs
from gossamer_testkit.corpus.oracles import sparse_results
from gossamer_testkit.matrices.cases import csr_cases

OPTIONS = {"dtype": "float64", "index_dtype": "int32", "features": 3, "block": 2}
MATRICES = {matrix.name: matrix for matrix in csr_cases(dtype="float64", index_dtype="int32")}
CASES = {
    name: [*make(OPTIONS)]
    for name, make in {
        "ell": format_inputs.ell_cases,
        "dcsr": format_inputs.dcsr_cases,
        "row_groups": format_inputs.row_groups_cases,
        "row_sums": format_inputs.row_sums_cases,
        "segment_sums": format_inputs.segment_sums_cases,
        "tiled_csr": format_inputs.tiled_csr_cases,
    }.items()
}


def scipy_matrix(case):
    matrix = MATRICES[case.name]
    arrays = matrix.data, matrix.indices, matrix.indptr
    return sparse.csr_array(arrays, shape=matrix.shape)


@pytest.mark.parametrize("name", CASES)
def test_there_are_empty_and_full_matrices_among_the_cases(name):
    sizes = {MATRICES[case.name].nnz for case in CASES[name]}
    assert 0 in sizes
    assert max(sizes) > 20


@pytest.mark.parametrize("name", ["ell", "row_groups"])
def test_products_are_those_of_scipy(name):
    for case in CASES[name]:
        expected = scipy_matrix(case) @ case.values["b"]
        result = getattr(sparse_results, name)(case.values, OPTIONS)["c"].array
        np.testing.assert_array_equal(result, expected, err_msg=case.name)


def test_rows_that_are_not_stored_do_not_change():
    for case in CASES["dcsr"]:
        product = scipy_matrix(case) @ case.values["b"]
        expected = case.values["c"].copy()
        stored = case.values["indices_i"]
        expected[stored] = product[stored]
        result = sparse_results.dcsr(case.values, OPTIONS)["c"].array
        np.testing.assert_array_equal(result, expected, err_msg=case.name)


def test_tiles_are_added_to_the_output():
    for case in CASES["tiled_csr"]:
        matrix = scipy_matrix(case)
        b = case.values["b"][: matrix.shape[1]]
        result = sparse_results.tiled_csr(case.values, OPTIONS)["c"].array
        np.testing.assert_array_equal(result, case.values["c"] + matrix @ b, err_msg=case.name)


@pytest.mark.parametrize(
    ("name", "oracle"), [("row_sums", "csr_row_sums"), ("segment_sums", "segment_sums")]
)
def test_sums_of_rows_are_those_of_scipy(name, oracle):
    for case in CASES[name]:
        result = getattr(sparse_results, oracle)(case.values, OPTIONS)["y"].array
        expected = scipy_matrix(case).sum(axis=1)
        np.testing.assert_array_equal(result, expected, err_msg=case.name)
