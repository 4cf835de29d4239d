"""Products of matrices in parts: computed in the parts, with values that change, and with gradients."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
import torch
from torch.autograd import gradcheck, gradgradcheck

import gossamer as gs
import gossamer_torch as gt
from gossamer_formats import Decomposition, SparseTensor, decompose, from_arrays
from gossamer_torch.custom_ops.products import sparse_product
from gossamer_torch.patterns import kept_pattern
from gossamer_torch.patterns_in_parts import pattern_in_parts

ROWS, COLUMNS = 4, 5


@pytest.fixture
def parts():
    """Parts of a matrix with a stored zero, whose values are not in the order of CSR."""
    rng = np.random.default_rng(0)
    rows, columns = np.nonzero(rng.random((ROWS, COLUMNS)) < 0.5)
    order, values = rng.permutation(rows.size), rng.standard_normal(rows.size)
    values[2] = 0
    coordinates = {"indices_0": rows[order], "indices_1": columns[order]}
    return decompose(from_arrays("coo", (ROWS, COLUMNS), data=values, **coordinates), "hyb", c=2)


@pytest.fixture
def factors(monkeypatch):
    """The sparse operands of the products that are computed."""
    computed, product = [], gs.spmm

    def record(matrix, dense):
        computed.append(matrix)
        return product(matrix, dense)

    monkeypatch.setattr(gs, "spmm", record)
    return computed


def refuse(*_arguments, **_keywords):
    raise AssertionError("a matrix was converted")


@pytest.mark.parametrize("features", [(), (3,)], ids=["spmv", "spmm"])
def test_products_are_computed_in_the_parts(parts, factors, features, monkeypatch):
    A, X = gt.to_sparse_matrix(parts), torch.randn(COLUMNS, *features, dtype=torch.float64)
    assert A.nnz == parts.nnz == parts.value_count
    for conversion in (Decomposition, SparseTensor):
        monkeypatch.setattr(conversion, "asformat", refuse)
        monkeypatch.setattr(conversion, "tocsr", refuse)
    product = gt.spmm if features else gt.spmv
    torch.testing.assert_close(product(A, X), torch.from_numpy(parts.toarray()) @ X)
    (factor,) = factors
    assert [part.tensor.format for part in factor.parts] == [
        part.tensor.format for part in parts.parts
    ]


def test_changed_values_are_read(parts, factors):
    A, X = gt.to_sparse_matrix(parts), torch.randn(COLUMNS, 3, dtype=torch.float64)
    for other in (A, A.with_values(torch.randn(2, A.nnz, dtype=torch.float64))):
        for _ in range(2):
            other.values.mul_(-2).add_(1)
            torch.testing.assert_close(gt.spmm(other, X), other.to_dense() @ X)
    narrow = A.with_values(A.values.float())
    torch.testing.assert_close(gt.spmm(narrow, X.float()), narrow.to_dense() @ X.float())
    assert {type(factor) for factor in factors} == {Decomposition}
    assert [factor.dtype for factor in factors] == [np.float64] * 6 + [np.float32]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_narrow_values_are_multiplied_in_csr(parts, dtype):
    A = gt.to_sparse_matrix(parts)
    narrow, X = A.with_values(A.values.to(dtype)), torch.randn(COLUMNS, 3, dtype=dtype)
    expected = (narrow.to_dense().float() @ X.float()).to(dtype)
    torch.testing.assert_close(gt.spmm(narrow, X), expected, rtol=3e-2, atol=1e-2)


@pytest.mark.parametrize("features", [(), (3,)], ids=["spmv", "spmm"])
def test_gradients_reach_the_values_and_the_dense_operand(parts, factors, features):
    A = gt.to_sparse_matrix(parts)
    operands = (
        torch.randn(A.nnz, dtype=torch.float64, requires_grad=True),
        torch.randn(COLUMNS, *features, dtype=torch.float64, requires_grad=True),
    )

    def product(values, X):
        return gt.spmm(A.with_values(values), X)

    assert gradcheck(product, operands)
    assert gradgradcheck(product, operands)
    assert {type(factor) for factor in factors} == {Decomposition, SparseTensor}


@pytest.mark.filterwarnings("ignore:The .grad attribute:UserWarning")
def test_torch_finds_nothing_wrong_with_products_in_parts(parts):
    A = gt.to_sparse_matrix(parts)
    operands = (
        A.values.clone().requires_grad_(),
        torch.randn(COLUMNS, 2, dtype=torch.float64, requires_grad=True),
    )
    arguments = (*operands, A.crow, A.col, COLUMNS, False)
    torch.library.opcheck(
        torch.ops.gossamer.spmm.default,
        arguments,
        test_utils=("test_schema", "test_autograd_registration", "test_faketensor"),
    )


def test_compiled_graphs_multiply_in_the_parts(parts, factors):
    A, X = gt.to_sparse_matrix(parts), torch.randn(COLUMNS, 3, dtype=torch.float64)
    values = A.values.clone().requires_grad_()

    def model(values, X):
        return gt.spmm(A.with_values(values), X).square().sum()

    model(values, X).backward()
    (expected,), values.grad = [values.grad], None
    factors.clear()
    torch.compile(model, fullgraph=True, backend="aot_eager")(values, X).backward()
    torch.testing.assert_close(values.grad, expected)
    assert {type(factor) for factor in factors} == {Decomposition}


def test_a_prepared_matrix_is_an_operand(factors):
    stored = scipy.sparse.random_array(
        (512, 1030), density=0.2, format="csr", dtype=np.float32, rng=np.random.default_rng(0)
    )
    prepared = gs.prepare(stored, features=64, calls=10**9)
    assert isinstance(prepared, Decomposition)
    X = torch.randn(1030, 64)
    torch.testing.assert_close(gt.spmm(prepared, X), torch.from_numpy(stored @ X.numpy()))
    assert [factor.format for factor in factors] == [prepared.format]


def test_the_pattern_is_made_once_for_other_values(parts):
    A = gt.to_sparse_matrix(parts)
    other = parts.with_values(np.ones(parts.value_count))
    pattern, order = pattern_in_parts(parts)
    assert not np.array_equal(order, np.sort(order))
    assert pattern_in_parts(other).pattern is pattern
    assert kept_pattern(A.crow, A.col, COLUMNS) is pattern
    ones = gt.to_sparse_matrix(other)
    assert kept_pattern(ones.crow, ones.col, COLUMNS) is pattern
    assert ones.values.tolist() == [1] * parts.nnz


def test_a_write_to_the_indices_leaves_the_parts(parts, factors):
    A, X = gt.to_sparse_matrix(parts), torch.randn(COLUMNS, 3, dtype=torch.float64)
    A.col.copy_(A.col.flip(0))
    torch.testing.assert_close(gt.spmm(A, X), A.to_dense() @ X)
    assert isinstance(factors[0], SparseTensor)
    torch.testing.assert_close(gt.spmm(parts, X), torch.from_numpy(parts.toarray()) @ X)


def test_zeros_that_fill_blocks_are_no_elements():
    stored = scipy.sparse.csr_array(np.array([[1.0, 2, 0, 0], [0, 3, 0, 0], [0, 0, 0, 4]]))
    blocks = gs.from_scipy(stored).asformat("bsr", block_rows=2, block_columns=2)
    A = gt.to_sparse_matrix(decompose(blocks, "hyb", c=1))
    assert A.values.tolist() == [1, 2, 3, 4]
    assert np.array_equal(A.to_dense().numpy(), stored.toarray())


@pytest.mark.parametrize("shape", [(0, 4), (3, 0), (3, 4)])
def test_parts_without_elements(shape):
    empty = decompose(gs.from_scipy(scipy.sparse.csr_array(shape)), "hyb")
    A, X = gt.to_sparse_matrix(empty), torch.ones(shape[1], 2, dtype=torch.float64)
    X.requires_grad_()
    C = sparse_product(A.values, X, A.crow, A.col, shape[1], transposed=False)
    C.sum().backward()
    assert torch.equal(C, torch.zeros(shape[0], 2, dtype=torch.float64))
    assert torch.equal(X.grad, torch.zeros(shape[1], 2, dtype=torch.float64))
