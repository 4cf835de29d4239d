"""SpMM on tensors of torch: results of all layouts, dtypes and batches; compilation; bad operands."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse
import torch

import gossamer as gs
import gossamer_torch as gt
from gossamer_ir.errors import ArgumentError, FormatError

pytestmark = pytest.mark.filterwarnings("ignore:Sparse .* beta:UserWarning")

TOLERANCES = {
    torch.float32: 1e-6,
    torch.float64: 1e-14,
    torch.float16: 1e-2,
    torch.bfloat16: 3e-2,
}


def matrix(arrays, dtype=torch.float32):
    return gt.SparseMatrix(*arrays, torch.randn(5, dtype=dtype), shape=(3, 4))


@pytest.mark.parametrize("index_dtype", [torch.int32, torch.int64], ids=str)
@pytest.mark.parametrize("dtype", TOLERANCES, ids=str)
def test_products_in_every_dtype(arrays, dtype, index_dtype):
    A = matrix([indices.to(index_dtype) for indices in arrays], dtype)
    X = torch.randn(4, 5, dtype=dtype)
    C = gt.spmm(A, X)
    assert C.dtype == dtype
    expected = A.to_dense().double() @ X.double()
    torch.testing.assert_close(C.double(), expected, rtol=TOLERANCES[dtype], atol=1e-3)


@pytest.mark.parametrize("layout", ["csr", "csc", "coo", "bsr"])
def test_gradients_reach_the_values_of_every_layout(layout):
    dense = torch.tensor([[1.0, 0, 2, 0], [0, 0, 0, 0], [0, 3, 0, 4], [5, 0, 0, 0]])
    leaf = dense.clone().requires_grad_()
    S = {
        "csr": lambda: leaf.to_sparse_csr(),
        "csc": lambda: leaf.to_sparse_csc(),
        "coo": lambda: leaf.to_sparse_coo(),
        "bsr": lambda: leaf.to_sparse_bsr((2, 2)),
    }[layout]()
    X = torch.randn(4, 3)
    weights = torch.randn(4, 3)
    (gt.spmm(S, X) * weights).sum().backward()
    stored = (S.detach().to_dense() != 0) | (dense != 0)
    expected = (weights @ X.T)[stored]
    torch.testing.assert_close(leaf.grad.to_dense()[stored], expected)


def test_tensors_of_gossamer_are_operands():
    source = scipy.sparse.random_array((20, 30), density=0.2, rng=np.random.default_rng(0))
    tensor = gs.from_scipy(source)
    X = torch.randn(30, 3, dtype=torch.float64)
    for operand in (tensor, tensor.asformat("hyb", c=2), tensor.asformat("coo")):
        torch.testing.assert_close(gt.spmm(operand, X), torch.from_numpy(source @ X.numpy()))


def test_batches_are_those_of_single_products(arrays):
    A, X = matrix(arrays), torch.randn(2, 3, 4, 5)
    expected = torch.stack([torch.stack([gt.spmm(A, x) for x in row]) for row in X])
    torch.testing.assert_close(gt.spmm(A, X), expected)


@pytest.mark.parametrize("shape", [(0, 4), (3, 0), (0, 0)])
def test_matrices_without_elements(shape):
    A = gt.SparseMatrix(
        torch.zeros(shape[0] + 1, dtype=torch.int64),
        torch.zeros(0, dtype=torch.int64),
        shape=shape,
    )
    X = torch.randn(shape[1], 2, requires_grad=True)
    C = gt.spmm(A, X)
    assert torch.equal(C, torch.zeros(shape[0], 2))
    C.sum().backward()
    assert torch.equal(X.grad, torch.zeros(shape[1], 2))


def test_operands_that_are_not_contiguous(arrays):
    A, X = matrix(arrays), torch.randn(5, 4).T
    expected = A.to_dense() @ X
    torch.testing.assert_close(gt.spmm(A, X), expected)
    torch.testing.assert_close(gt.spmm(A, torch.randn(4, 1).expand(4, 3)).shape, (3, 3))
    values = torch.randn(10)[::2]
    torch.testing.assert_close(
        gt.spmm(A.with_values(values), X), A.with_values(values).to_dense() @ X
    )


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning")
def test_gradients_of_forward_mode_are_refused(arrays):
    A, X, tangent = matrix(arrays), torch.randn(2, 4, 3), torch.ones(2, 4, 3)
    with pytest.raises(ArgumentError, match="gradient of forward mode"):
        torch.func.jvp(lambda x: gt.spmm(A, x), (X,), (tangent,))


@pytest.mark.filterwarnings("ignore:There is a performance drop:UserWarning")
def test_vmap_maps_products(arrays):
    A, X = matrix(arrays), torch.randn(2, 4, 3)
    torch.testing.assert_close(torch.vmap(lambda x: gt.spmm(A, x))(X), gt.spmm(A, X))


def test_torch_compiles_products_of_changing_sizes():
    def model(crow, col, values, X):
        A = gt.SparseMatrix(crow, col, values, shape=(crow.shape[0] - 1, X.shape[0]))
        return gt.spmm(A, X)

    compiled = torch.compile(model, fullgraph=True, backend="aot_eager", dynamic=True)
    for size in (4, 7, 30):
        places = torch.randint(0, size, (2, 3 * size))
        A = gt.from_edge_index(places, torch.randn(3 * size), shape=(size + 2, size))
        X = torch.randn(size, 3)
        torch.testing.assert_close(compiled(A.crow, A.col, A.values, X), A.to_dense() @ X)


def test_torch_compiles_a_whole_model(arrays):
    values = torch.randn(5, requires_grad=True)
    X = torch.randn(4, 3, requires_grad=True)

    def model(values, X):
        A = gt.SparseMatrix(*arrays, values, shape=(3, 4))
        return torch.relu(gt.spmm(A, X)).square().sum()

    model(values, X).backward()
    expected = [values.grad.clone(), X.grad.clone()]
    values.grad = X.grad = None
    torch.compile(model, fullgraph=True, backend="aot_eager")(values, X).backward()
    torch.testing.assert_close([values.grad, X.grad], expected)


def test_a_write_between_forward_and_backward_is_an_error(arrays):
    values, X = torch.randn(5, requires_grad=True), torch.randn(4, 3, requires_grad=True)
    C = gt.spmm(gt.SparseMatrix(*arrays, values, shape=(3, 4)), X)
    with torch.no_grad():
        values.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        C.sum().backward()


def test_a_write_to_the_indices_is_seen(arrays):
    A, X = matrix(arrays), torch.randn(4, 3)
    gt.spmm(A, X)
    A.col[0] = 3
    torch.testing.assert_close(gt.spmm(A, X), A.to_dense() @ X)
    A.col[0] = 4
    with pytest.raises(FormatError) as caught:
        gt.spmm(A, X)
    assert caught.value.code == "format.range"


def test_the_matrix_may_be_gone_before_the_gradient(arrays):
    X = torch.randn(4, 3, requires_grad=True)
    A = gt.SparseMatrix(arrays[0].clone(), arrays[1].clone(), shape=(3, 4))
    dense = A.to_dense()
    C = gt.spmm(A, X)
    del A
    C.sum().backward()
    torch.testing.assert_close(X.grad, dense.T @ torch.ones(3, 3))


def test_threads_share_a_matrix(arrays):
    A, X = matrix(arrays), torch.randn(4, 3)
    expected = gt.spmm(A, X)
    with ThreadPoolExecutor(4) as pool:
        results = [*pool.map(lambda _: gt.spmm(A, X), range(64))]
    assert all(torch.equal(result, expected) for result in results)


class Products(torch.utils.data.Dataset):
    """A data set whose items are products, computed in the processes of a loader."""

    def __init__(self, A):
        self.A = A

    def __len__(self):
        return 4

    def __getitem__(self, index):
        return gt.spmm(self.A, torch.full((4, 2), float(index)))


@pytest.mark.parametrize("start", ["fork", "spawn", "forkserver"])
def test_processes_of_a_data_loader_compute_products(arrays, start):
    A = matrix(arrays)
    gt.spmm(A, torch.ones(4, 2))
    loader = torch.utils.data.DataLoader(Products(A), num_workers=1, multiprocessing_context=start)
    expected = [A.to_dense() @ torch.full((4, 2), float(index)) for index in range(4)]
    torch.testing.assert_close([item[0] for item in loader], expected)


def test_a_matrix_is_pickled(arrays):
    A = matrix(arrays)
    torch.testing.assert_close(pickle.loads(pickle.dumps(A)).to_dense(), A.to_dense())


@pytest.mark.parametrize(
    ("code", "operand"),
    [
        ("operand.shape", torch.ones(3, 2)),
        ("operand.shape", torch.tensor(1.0)),
        ("operand.dtype", torch.ones(4, 2, dtype=torch.float64)),
        ("operand.dtype", torch.ones(4, 2, dtype=torch.int64)),
        ("operand.kind", [[1.0]] * 4),
        ("operand.kind", torch.eye(4).to_sparse_coo()),
        ("operand.device", torch.ones(4, 2, device="meta")),
    ],
)
def test_dense_operands_that_are_refused(arrays, code, operand):
    with pytest.raises(ArgumentError) as caught:
        gt.spmm(matrix(arrays), operand)
    assert caught.value.code == code


def test_a_dense_matrix_is_refused_as_the_sparse_one():
    with pytest.raises(ArgumentError, match=r"layout torch.strided; expected CSR"):
        gt.spmm(torch.eye(3), torch.eye(3))
