"""Programs of the language as operators of torch: gradients by adjoints, dtypes, sizes, compilation."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse
import torch
from torch.autograd import gradcheck, gradgradcheck

import gossamer as gs
import gossamer_torch as gt
from gossamer.operators.spmm import SCRIPT as SPMM
from gossamer.operators.spmv import SCRIPT as SPMV
from gossamer_ir.errors import ArgumentError, UnsupportedError

FLOOR = """
@T.prim_func
def floors(x: T.handle, y: T.handle, m: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(m)
    X = T.sp.match_buffer(x, (I,), "float32")
    Y = T.sp.match_buffer(y, (I,), "float32")
    with T.sp.iteration([I], "S", "floors") as [i]:
        Y[i] = T.floor(X[i])
"""


def random(*shape, dtype=torch.float64):
    return torch.randn(*shape, dtype=dtype, requires_grad=True)


def test_first_and_second_gradients_are_adjoints(arrays):
    product = gt.custom_op(SPMM, specialize={"feat_size": 3})
    operands = (random(5), random(4, 3))
    assert gradcheck(lambda a, b: product(a, b, *arrays), operands)
    assert gradgradcheck(lambda a, b: product(a, b, *arrays), operands)


def test_a_product_of_einsum_is_an_operator():
    A = scipy.sparse.csr_array(np.array([[0.0, 2.0, 0.0], [3.0, 0.0, 4.0]]))
    x, y = random(2), random(3)
    bilinear = gt.custom_op(
        gs.einsum_program("ij,i,j->", A, x.detach().numpy(), y.detach().numpy())
    )
    tensors = {
        "indptr": torch.from_numpy(A.indptr),
        "indices": torch.from_numpy(A.indices),
        "data": torch.from_numpy(A.data),
    }

    def product(x, y):
        chosen = {"x1": x, "x2": y}
        arguments = [
            chosen.get(name, tensors.get(name.rsplit("_", 1)[0])) for name in bilinear.inputs
        ]
        matrix_sizes = {"m_x0": 2, "n_x0": 3, "nnz_x0": 3, "n_i": 2, "n_j": 3}
        sizes = {size: matrix_sizes[size] for size in bilinear.sizes}
        return bilinear(*arguments, **sizes)

    torch.testing.assert_close(product(x, y).reshape(()), x @ torch.from_numpy(A.toarray()) @ y)
    assert gradcheck(product, (x, y))


def test_torch_compiles_a_call_and_its_gradient(arrays):
    product = gt.custom_op(SPMV)
    values, x = random(5, dtype=torch.float32), random(4, dtype=torch.float32)

    def model(values, x):
        return product(values, x, *arrays).square().sum()

    model(values, x).backward()
    expected = [values.grad.clone(), x.grad.clone()]
    values.grad = x.grad = None
    torch.compile(model, fullgraph=True, backend="aot_eager")(values, x).backward()
    torch.testing.assert_close([values.grad, x.grad], expected)


@pytest.mark.filterwarnings("ignore:The .grad attribute:UserWarning")
def test_torch_finds_nothing_wrong_with_the_operator(arrays):
    operator = gt.custom_op(SPMV).operator_for(torch.float64, torch.int64)
    registered = getattr(torch.ops.gossamer, operator.name).default
    torch.library.opcheck(registered, (random(5), random(4), *arrays, 3, 4, 5))


def test_threads_compute_first_gradients_at_once(arrays):
    script = SPMV.replace("spmv", "spmv_of_threads")
    product, results = gt.custom_op(script), []

    def gradients(_):
        values, x = torch.ones(5, requires_grad=True), torch.ones(4, requires_grad=True)
        return torch.autograd.grad(product(values, x, *arrays).sum(), (values, x))

    with ThreadPoolExecutor(8) as pool:
        results = [*pool.map(gradients, range(16))]
    for result in results:
        torch.testing.assert_close(result, results[0])


def test_one_program_is_registered_once():
    first, second = gt.custom_op(SPMV), gt.custom_op(SPMV)
    kinds = (torch.float32, torch.int32)
    assert first.operator_for(*kinds) is second.operator_for(*kinds)


@pytest.mark.parametrize(
    ("code", "change"),
    [
        ("operator.operands", lambda a, x, p, c: (a, x, p)),
        ("operand.dtype", lambda a, x, p, c: (a, x.double(), p, c)),
        ("operand.dtype", lambda a, x, p, c: (a, x, p.int(), c)),
        ("operand.dtype", lambda a, x, p, c: (a, x, p, c.float())),
        ("operand.shape", lambda a, x, p, c: (a, x[:, None], p, c)),
        ("operand.kind", lambda a, x, p, c: (None, x, p, c)),
    ],
)
def test_arguments_that_are_refused(arrays, code, change):
    product = gt.custom_op(SPMV)
    with pytest.raises(ArgumentError) as caught:
        product(*change(torch.ones(5), torch.ones(4), *arrays))
    assert caught.value.code == code


def test_a_size_that_no_array_tells_is_asked_for(arrays):
    product = gt.custom_op(gs.adjoint("spmv", wrt=["X"]))
    arguments = (torch.ones(5), *arrays, torch.ones(3))
    with pytest.raises(ArgumentError, match="'n' of the program does not follow") as caught:
        product(*arguments)
    assert caught.value.code == "kernel.size"
    assert product(*arguments, n=4).shape == (4,)


def test_what_has_no_derivative_is_refused_by_name():
    floors = gt.custom_op(FLOOR)
    x = torch.tensor([1.5], requires_grad=True)
    y = floors(x)
    assert y.tolist() == [1]
    with pytest.raises(UnsupportedError, match="floor"):
        y.sum().backward()
