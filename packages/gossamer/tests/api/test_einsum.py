"""`einsum` agrees with NumPy's for operands in all formats, and refuses by name what it does not compute."""

import types

import numpy as np
import pytest
import scipy.sparse

import gossamer as gs
from gossamer_ir.errors import ArgumentError, ParseError, UnsupportedError
from gossamer_testkit.matrices.oracles import max_relative_error, tolerance

RNG = np.random.default_rng(4)
MATRIX = scipy.sparse.random(14, 10, 0.2, "csr", np.float64, RNG)
OTHER = scipy.sparse.random(14, 10, 0.4, "csr", np.float64, RNG)
LEFT, RIGHT = RNG.standard_normal((14, 3)), RNG.standard_normal((10, 3))
ROWS, COLUMNS = RNG.standard_normal(14), RNG.standard_normal(10)

FORMATS = {
    "csr": {},
    "coo": {},
    "csc": {},
    "dcsr": {},
    "ell": {},
    "dia": {},
    "sell": {},
    "bitmask": {},
    "bsr": {"block_rows": 2, "block_columns": 2},
}
PRODUCTS = {
    "ij,jk->ik": (RIGHT,),
    "ij->i": (),
    "ij->j": (),
    "ij->ji": (),
    "ij->": (),
    "ij,jk->k": (RIGHT,),
    "ij,ik,jk->ij": (LEFT, RIGHT),
    "ij,i,j->ij": (ROWS, COLUMNS),
    "ij,ij->ij": (OTHER,),
    "ij,ij,jk->ik": (OTHER, RIGHT),
    "ij,i": (ROWS,),
    "ij,Kj->Ki": (RIGHT.T.copy(),),
}


def dense(operand):
    return operand.toarray() if hasattr(operand, "toarray") else operand


@pytest.mark.parametrize("subscripts", PRODUCTS)
@pytest.mark.parametrize("format", FORMATS)
def test_results_are_those_of_numpy(format, subscripts):
    matrix = gs.SparseTensor(MATRIX).asformat(format, **FORMATS[format])
    others = PRODUCTS[subscripts]
    result = gs.einsum(subscripts, matrix, *others)
    expected = np.einsum(subscripts, MATRIX.toarray(), *map(dense, others))
    terms = np.einsum(subscripts, abs(MATRIX).toarray(), *(abs(dense(other)) for other in others))
    error = max_relative_error(dense(result), expected, magnitude=terms)
    assert error <= tolerance(2 * MATRIX.size, "float64")


def test_a_result_with_the_subscripts_of_the_sparse_operand_has_its_pattern_and_format():
    result = gs.einsum("ij,ik,jk->ij", MATRIX, LEFT, RIGHT)
    assert (result.format, result.nnz) == ("csr", MATRIX.nnz)
    np.testing.assert_array_equal(result.arrays["indices"], MATRIX.indices)


def test_the_operand_with_the_fewest_elements_is_iterated():
    result = gs.einsum("ij,ij->ij", OTHER, MATRIX)
    assert result.nnz == MATRIX.nnz
    np.testing.assert_allclose(result.toarray(), OTHER.multiply(MATRIX).toarray())


def test_three_dimensions_are_iterated_in_their_format():
    array = RNG.standard_normal((4, 5, 6)) * (RNG.random((4, 5, 6)) < 0.2)
    coordinates = np.array(np.nonzero(array))
    tensor = gs.from_arrays(
        "coo",
        array.shape,
        data=array[tuple(coordinates)],
        **{f"indices_{number}": each.astype(np.int32) for number, each in enumerate(coordinates)},
    )
    factors = RNG.standard_normal((5, 2)), RNG.standard_normal((6, 2))
    result = gs.einsum("ijk,jr,kr->ir", tensor, *factors)
    expected = np.einsum("ijk,jr,kr->ir", array, *factors)
    terms = np.einsum("ijk,jr,kr->ir", abs(array), *map(abs, factors))
    error = max_relative_error(result, expected, magnitude=terms)
    assert error <= tolerance(2 * array.size, "float64")


@pytest.mark.parametrize(("reducer", "empty"), [("max", -np.inf), ("min", np.inf)])
def test_other_reducers_are_those_of_stored_elements(reducer, empty):
    result = gs.einsum("ij->i", MATRIX, reducer=reducer)
    reduced = [getattr(row.data, reducer)(initial=empty) for row in MATRIX]
    np.testing.assert_array_equal(result, reduced)
    assert empty in gs.einsum("ij->j", MATRIX[:1], reducer=reducer)


def test_an_epilogue_is_applied_to_each_element():
    result = gs.einsum("ij,jk->ik", MATRIX, RIGHT, epilogue="T.max(out, 0.0) + 1.0")
    np.testing.assert_allclose(result, np.maximum(MATRIX @ RIGHT, 0) + 1)
    pattern = gs.einsum("ij,i->ij", MATRIX, ROWS, epilogue="T.exp(out)")
    scaled = MATRIX.multiply(ROWS[:, None]).tocsr()
    np.testing.assert_allclose(pattern.arrays["data"], np.exp(scaled.data))


def test_dense_operands_alone_are_multiplied():
    np.testing.assert_allclose(gs.einsum("ik,jk->ij", LEFT, RIGHT), LEFT @ RIGHT.T)
    assert np.isclose(gs.einsum("i,i->", ROWS, ROWS), ROWS @ ROWS)


def test_values_are_computed_in_the_common_dtype():
    matrix, right = MATRIX.astype(np.float32), RIGHT.astype(np.float32)
    assert gs.einsum("ij,jk->ik", matrix, right).dtype == np.float32
    assert gs.einsum("ij,jk->ik", matrix, RIGHT).dtype == np.float64


def test_the_program_is_compiled_with_the_schedule_of_the_operators():
    program = gs.einsum_program("ij,jk->ik", MATRIX, np.zeros((10, 64)))
    decisions = [decision.what for decision in gs.explain(program).decisions]
    assert "a tile of row i_x0 in registers during the loop over its elements j_x0" in decisions


REFUSED = {
    "einsum.subscripts": (ArgumentError, "ij,jk", (MATRIX,)),
    "einsum.shape": (ArgumentError, "ij,jk->ik", (MATRIX, LEFT)),
    "einsum.dtype": (ArgumentError, "ij,jk->ik", (MATRIX, RIGHT.astype(complex))),
    "einsum.co_iteration": (UnsupportedError, "ij,jk->ik", (MATRIX, OTHER.T.tocsr())),
    "einsum.diagonal": (UnsupportedError, "ii->i", (MATRIX[:10],)),
}


@pytest.mark.parametrize("code", REFUSED)
def test_what_is_not_computed_is_refused_by_name(code):
    kind, subscripts, operands = REFUSED[code]
    with pytest.raises(kind) as raised:
        gs.einsum(subscripts, *operands)
    assert raised.value.code == code


def test_an_unknown_reducer_and_an_epilogue_that_cannot_be_read_are_refused():
    with pytest.raises(ArgumentError, match="'mean'; expected") as raised:
        gs.einsum("ij->i", MATRIX, reducer="mean")
    assert raised.value.code == "einsum.reducer"
    with pytest.raises(ParseError):
        gs.einsum("ij->i", MATRIX, epilogue="out +")


@pytest.mark.parametrize("subscripts", ["ij,jj->i", "ij,jjk->ik"])
def test_a_letter_twice_in_a_dense_operand_selects_its_diagonal(subscripts):
    columns = MATRIX.shape[1]
    sizes = (columns, columns, 3) if "k" in subscripts else (columns, columns)
    dense = np.random.default_rng(0).random(sizes)
    expected = np.einsum(subscripts, MATRIX.toarray(), dense)
    np.testing.assert_allclose(gs.einsum(subscripts, MATRIX, dense), expected, rtol=1e-12)


def test_an_operand_that_requires_a_gradient_is_refused():
    dense = types.SimpleNamespace(requires_grad=True)
    with pytest.raises(ArgumentError, match="requires a gradient") as raised:
        gs.einsum("ij,jk->ik", MATRIX, dense)
    assert raised.value.code == "operand.kind"
