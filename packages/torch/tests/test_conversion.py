"""Sparse matrices from edge indexes, torch's tensors and gossamer's."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
import scipy.sparse
import torch

import gossamer as gs
import gossamer_torch as gt
import gossamer_torch.patterns
import gossamer_torch.torch_layouts
from gossamer_ir.errors import ArgumentError
from gossamer_torch.patterns import kept_pattern

pytestmark = pytest.mark.filterwarnings("ignore:Sparse .* beta:UserWarning")


def test_edges_in_any_order_with_duplicates_and_weights():
    edges = torch.tensor([[2, 0, 2, 2], [1, 1, 0, 1]])
    weights = torch.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    A = gt.from_edge_index(edges, weights, shape=(3, 2))
    assert A.nnz == 4
    assert A.to_dense().tolist() == [[0, 2], [0, 0], [3, 5]]
    (A.to_dense() ** 2).sum().backward()
    assert weights.grad.tolist() == [10, 4, 6, 10]


def test_the_shape_of_edges_is_as_large_as_they_require():
    assert gt.from_edge_index(torch.tensor([[0, 4], [1, 1]])).shape == (5, 5)
    assert gt.from_edge_index(torch.zeros(2, 0, dtype=torch.int64)).shape == (0, 0)


def test_csr_is_shared_with_torch():
    S = torch.eye(3).to_sparse_csr()
    A = gt.to_sparse_matrix(S)
    assert A.values.data_ptr() == S.values().data_ptr()
    assert A.col.data_ptr() == S.col_indices().data_ptr()
    assert A.to_torch().values().data_ptr() == A.values.data_ptr()


@pytest.mark.parametrize(
    ("code", "edges"),
    [
        ("operand.shape", torch.zeros(3, 2, dtype=torch.int64)),
        ("operand.dtype", torch.zeros(2, 2)),
        ("operand.range", torch.tensor([[0, 2], [0, 0]])),
        ("operand.range", torch.tensor([[0, 0], [-1, 0]])),
        ("operand.kind", [[0], [0]]),
    ],
)
def test_edges_that_are_refused(code, edges):
    with pytest.raises(ArgumentError) as caught:
        gt.from_edge_index(edges, shape=(2, 2))
    assert caught.value.code == code


@pytest.mark.parametrize("operand", [None, 3, "text"])
def test_what_is_not_a_sparse_matrix_is_refused(operand):
    with pytest.raises(ArgumentError) as caught:
        gt.to_sparse_matrix(operand)
    assert caught.value.code == "operand.kind"


def test_a_tensor_with_a_dense_dimension_is_refused():
    rows = torch.sparse_coo_tensor(
        torch.tensor([[0, 2]]), torch.ones(2, 4), (3, 4), check_invariants=True
    )
    with pytest.raises(ArgumentError, match="1 sparse and 1 dense dimensions") as caught:
        gt.to_sparse_matrix(rows)
    assert caught.value.code == "operand.kind"


NO_EDGES = torch.zeros(2, 0, dtype=torch.int64)


@pytest.mark.parametrize(
    ("matrix", "code"),
    [
        (lambda: torch.empty(2, 2).to_sparse_coo().to("meta"), "operand.device"),
        (lambda: torch.quantize_per_tensor(torch.ones(2, 2), 1, 0, torch.quint8), "operand.kind"),
        (lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(1)]), "operand.kind"),
    ],
    ids=["meta", "quantized", "nested"],
)
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning")
@pytest.mark.filterwarnings("ignore:.*quantize:UserWarning")
def test_kinds_of_tensors_that_are_refused(matrix, code):
    with pytest.raises(ArgumentError) as caught:
        gt.to_sparse_matrix(matrix())
    assert caught.value.code == code


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning")
def test_a_nested_operand_is_refused():
    X = torch.nested.nested_tensor([torch.ones(2), torch.ones(1)])
    with pytest.raises(ArgumentError) as caught:
        gt.spmm(torch.eye(2).to_sparse_coo(), X)
    assert caught.value.code == "operand.kind"


@pytest.mark.parametrize("shape", [(3,), (3, 4, 5), (-1, 2), (2.0, 2), "ab"])
def test_shapes_that_are_not_of_a_matrix_are_refused(shape):
    for call in (
        lambda: gt.SparseMatrix(torch.zeros(3, dtype=torch.int64), NO_EDGES[0], shape=shape),
        lambda: gt.from_edge_index(NO_EDGES, shape=shape),
    ):
        with pytest.raises(ArgumentError) as caught:
            call()
        assert caught.value.code == "operand.shape"


def test_a_batch_is_not_a_relation():
    A = gt.from_edge_index(torch.tensor([[0], [0]]))
    with pytest.raises(ArgumentError) as caught:
        gt.RelationalMatrix([A.with_values(torch.ones(2, 1))])
    assert caught.value.code == "operand.shape"


@pytest.mark.parametrize("format", ["hyb", "sell"])
def test_products_are_computed_in_the_format_of_the_tensor_until_its_values_change(format):
    source = scipy.sparse.random_array(
        (40, 30), density=0.2, rng=np.random.default_rng(0), dtype=np.float32
    )
    tensor = gs.from_scipy(source).asformat(format)
    A, X = gt.to_sparse_matrix(tensor), torch.randn(30, 3)
    values = A.values.requires_grad_()

    def operand():
        return kept_pattern(A.crow, A.col, 30).operand(values, transposed=False)

    assert operand().format == format
    dense = torch.from_numpy(source.toarray()).requires_grad_()
    torch.testing.assert_close(gt.spmm(A, X), dense @ X)
    gt.spmm(A, X).square().sum().backward()
    (dense @ X).square().sum().backward()
    rows = A.row_indices().long()
    torch.testing.assert_close(values.grad, dense.grad[rows, A.col.long()], rtol=1e-4, atol=1e-4)
    with torch.no_grad():
        values.mul_(2)
    assert operand().format == "csr"
    torch.testing.assert_close(gt.spmm(A, X), 2 * dense @ X)


@pytest.mark.parametrize("format", ["hyb", "coo", "csr"])
def test_a_tensor_is_converted_once_until_the_matrix_is_written_to(format):
    source = scipy.sparse.random_array((20, 20), density=0.2, rng=np.random.default_rng(0))
    tensor = gs.from_scipy(source).asformat(format)
    A, X = gt.to_sparse_matrix(tensor), torch.randn(20, 3, dtype=torch.float64)
    assert gt.to_sparse_matrix(tensor) is A
    with torch.inference_mode():
        assert gt.to_sparse_matrix(tensor) is A
    A.values.mul_(2)
    torch.testing.assert_close(gt.spmm(tensor, X), torch.from_numpy(source @ X.numpy()))
    B = gt.to_sparse_matrix(tensor)
    B.values.requires_grad_()
    assert not gt.to_sparse_matrix(tensor).values.requires_grad
    B.col[0] = B.col[1]
    torch.testing.assert_close(gt.spmm(tensor, X), torch.from_numpy(source @ X.numpy()))


@pytest.mark.parametrize("format", ["hyb", "coo", "csr"])
def test_a_tensor_ends_with_all_that_was_made_of_it(format):
    tensor = gs.from_scipy(scipy.sparse.eye_array(3)).asformat(format)
    X = torch.randn(3, 2, dtype=torch.float64, requires_grad=True)
    gt.spmm(tensor, X).sum().backward()
    values = weakref.ref(gt.to_sparse_matrix(tensor).values)
    tensor = weakref.ref(tensor)
    gc.collect()
    assert tensor() is None
    assert values() is None


@pytest.mark.parametrize("format", ["hyb", "sell", "csr"])
def test_a_tensor_has_one_set_of_plans_for_both_packages(format):
    source = scipy.sparse.random_array((20, 15), density=0.2, rng=np.random.default_rng(0))
    tensor = gs.from_scipy(source).asformat(format)
    A, X = gt.to_sparse_matrix(tensor), np.ones((15, 3))
    operand = kept_pattern(A.crow, A.col, 15).operand(A.values, transposed=False)
    assert operand is not tensor
    for product, other in (
        (lambda: gs.spmm(tensor, X), lambda: gt.spmm(tensor, torch.from_numpy(X))),
        (lambda: gt.spmv(tensor, torch.ones(15).double()), lambda: gs.spmv(tensor, X[:, 0])),
    ):
        # The second call makes the plans of later ones.
        product()
        product()
        kept = set(tensor.memo)
        other()
        assert kept
        assert set(tensor.memo) == set(operand.memo) == kept


def test_integers_become_floats_of_the_default_dtype_of_each_call():
    tensor = gs.from_scipy(scipy.sparse.eye_array(3, dtype=np.int8))
    before = torch.get_default_dtype()
    try:
        for dtype in (torch.float64, torch.float32):
            torch.set_default_dtype(dtype)
            assert gt.to_sparse_matrix(tensor).values.dtype == dtype
    finally:
        torch.set_default_dtype(before)


def test_the_transposed_matrix_of_a_tensor_is_made_once_for_gradients():
    source = scipy.sparse.random_array((20, 15), density=0.2, rng=np.random.default_rng(0))
    tensor = gs.from_scipy(source).asformat("hyb")
    A = gt.to_sparse_matrix(tensor)

    def operand():
        return kept_pattern(A.crow, A.col, 15).operand(A.values, transposed=True)

    assert operand() is operand()
    for _ in range(2):
        X = torch.randn(15, 3, dtype=torch.float64, requires_grad=True)
        gt.spmm(tensor, X).sum().backward()
        torch.testing.assert_close(X.grad, torch.from_numpy(source.T @ np.ones((20, 3))))
    before = operand()
    A.values.mul_(2)
    assert operand() is not before
    X = torch.randn(15, 3, dtype=torch.float64, requires_grad=True)
    gt.spmm(A, X).sum().backward()
    torch.testing.assert_close(X.grad, torch.from_numpy(2 * source.T @ np.ones((20, 3))))


def test_values_with_another_pattern_are_those_of_another_matrix():
    A, B = (
        gt.to_sparse_matrix(
            gs.from_scipy(
                scipy.sparse.random_array((20, 20), density=0.1, rng=np.random.default_rng(seed))
            ).asformat("coo")
        )
        for seed in (0, 1)
    )
    mixed, X = B.with_values(A.values), torch.randn(20, 3, dtype=torch.float64)
    gt.spmm(B, X)
    torch.testing.assert_close(gt.spmm(mixed, X), mixed.to_dense() @ X)


def _layouts():
    return {
        "csr": lambda dense: dense.to_sparse_csr(),
        "csc": lambda dense: dense.to_sparse_csc(),
        "coo": lambda dense: dense.to_sparse_coo(),
        "bsr": lambda dense: dense.to_sparse_bsr((2, 2)),
    }


@pytest.fixture
def transposed_patterns(monkeypatch):
    """The patterns that are transposed."""
    patterns = []
    transpose = gossamer_torch.patterns._transpose
    monkeypatch.setattr(
        gossamer_torch.patterns,
        "_transpose",
        lambda pattern: patterns.append(pattern) or transpose(pattern),
    )
    return patterns


@pytest.mark.parametrize("layout", _layouts())
def test_a_sparse_tensor_is_transposed_once(layout, transposed_patterns):
    S = _layouts()[layout](torch.randn(6, 8).relu())
    for _ in range(3):
        dense = torch.randn(8, 3, requires_grad=True)
        gt.spmm(S, dense).sum().backward()
        assert torch.allclose(dense.grad, S.to_dense().T @ torch.ones(6, 3), atol=1e-5)
    assert len(transposed_patterns) == 1


@pytest.mark.parametrize("layout", _layouts())
def test_writes_to_values_keep_the_indices_of_a_sparse_tensor(layout, transposed_patterns):
    S = _layouts()[layout](torch.randn(6, 8).relu())
    for factor in (1.0, 2.0, 0.5):
        S.values().mul_(factor)
        dense = torch.randn(8, 3, requires_grad=True)
        result = gt.spmm(S, dense)
        result.sum().backward()
        assert torch.allclose(result, S.to_dense() @ dense, atol=1e-5)
    assert len(transposed_patterns) == 1


@pytest.mark.parametrize("layout", ["csr", "csc", "coo"])
def test_writes_to_indices_of_a_sparse_tensor_are_noticed(layout):
    S = _layouts()[layout](torch.tensor([[0.0, 2.0], [3.0, 0.0]]))
    assert (gt.spmm(S, torch.eye(2)) == S.to_dense()).all()
    indices = {"csr": "col_indices", "csc": "row_indices", "coo": "indices"}[layout]
    numbers = getattr(S, indices)()
    (numbers[1] if layout == "coo" else numbers).copy_(torch.tensor([0, 1]))
    assert (gt.spmm(S, torch.eye(2)) == S.to_dense()).all()


def test_indices_end_with_their_sparse_tensor():
    S = torch.randn(6, 8).relu().to_sparse_csr()
    gt.spmm(S, torch.ones(8, 2))
    assert S in gossamer_torch.torch_layouts._kept_indices
    count = len(gossamer_torch.torch_layouts._kept_indices)
    del S
    gc.collect()
    assert len(gossamer_torch.torch_layouts._kept_indices) == count - 1


def test_a_captured_matrix_of_a_sparse_tensor_is_compiled():
    S = torch.randn(9, 7).relu().to_sparse_csr()
    A, dense = gt.to_sparse_matrix(S), torch.randn(7, 3)
    compiled = torch.compile(lambda x: gt.spmm(A, x), fullgraph=True, backend="aot_eager")
    assert torch.allclose(compiled(dense), S.to_dense() @ dense, atol=1e-5)


@pytest.mark.parametrize("form", ["csr", "ell", "hyb"])
def test_a_compiled_product_takes_tensors_of_gossamer(form):
    matrices = [scipy.sparse.random_array((9, 7), density=d, rng=0) for d in (0.3, 0.5)]
    tensors = [gs.from_scipy(matrix.tocsr()) for matrix in matrices]
    if form == "hyb":
        tensors = [gs.decompose(tensor, "hyb") for tensor in tensors]
    else:
        tensors = [tensor.asformat(form) for tensor in tensors]
    compiled = torch.compile(gt.spmm, fullgraph=True, backend="aot_eager")
    for number in (0, 1, 0):
        dense = torch.randn(7, 3, dtype=torch.float64, requires_grad=True)
        result = compiled(tensors[number], dense)
        matrix = torch.from_numpy(matrices[number].toarray())
        assert torch.allclose(result, matrix @ dense)
        result.sum().backward()
        assert torch.allclose(dense.grad, matrix.T @ torch.ones(9, 3, dtype=torch.float64))


@pytest.mark.parametrize("layout", ["csc", "bsr"])
def test_leaves_of_layouts_without_gradients_are_refused(layout):
    S = _layouts()[layout](torch.ones(2, 2)).requires_grad_()
    with pytest.raises(ArgumentError, match="cannot accumulate"):
        gt.spmm(S, torch.ones(2, 2))
    with torch.no_grad():
        assert gt.spmm(S, torch.ones(2, 2)).tolist() == [[2, 2], [2, 2]]
