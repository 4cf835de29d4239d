"""Tensors on a GPU: results and gradients are those of the CPU, nothing is copied or waited for, and what
cannot run there is refused by name."""

from __future__ import annotations

import pytest
import torch
from gpu_tensors import STREAM, GpuTensor
from torch._subclasses.fake_tensor import FakeTensorMode

import gossamer_torch as gt
from gossamer.targets import resolve_target
from gossamer_backend import Registry
from gossamer_ir.errors import ArgumentError
from gossamer_torch.custom_ops.registration import torch_operator
from gossamer_torch.nn import GCNConv, SparseLinear

WAITS = {"cuStreamSynchronize", "cuCtxSynchronize"}
CROW, COL, VALUES = (
    torch.tensor([0, 2, 2, 5]),
    torch.tensor([1, 0, 3, 2, 1]),
    torch.arange(1.0, 6.0),
)
SCATTER = (torch.tensor([3, 0, 1]), torch.tensor([0, 2, 0]), torch.tensor([0, 2, 3]))
"""Sources, targets and offsets of two segments."""
SCALE_ROWS = """
@T.prim_func
def scale_rows(x: T.handle, s: T.handle, y: T.handle, m: T.int64, n: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(m)
    J = T.sp.dense_fixed(n)
    X = T.sp.match_buffer(x, (I, J), "float32")
    S = T.sp.match_buffer(s, (I,), "float32")
    Y = T.sp.match_buffer(y, (I, J), "float32")
    with T.sp.iteration([I, J], "SS", "scale") as [i, j]:
        Y[i, j] = S[i] * X[i, j]
"""


def integers(*shape):
    return torch.randint(-3, 4, shape).float()


def pattern(place):
    return place(CROW), place(COL)


def matrix(place, values):
    return gt.SparseMatrix(*pattern(place), values, shape=(3, 4))


CALLS = {
    "spmm": (lambda place, v, x: gt.spmm(matrix(place, v), x), (5,), (4, 3)),
    "spmm_of_vector": (lambda place, v, x: gt.spmv(matrix(place, v), x), (5,), (4,)),
    "batch": (lambda place, v, x: gt.spmm(matrix(place, v), x), (2, 5), (2, 4, 3)),
    "mean": (lambda place, v, x: gt.spmm(matrix(place, v), x, "mean"), (5,), (4, 3)),
    "maximum": (lambda place, v, x: gt.spmm(matrix(place, v), x, "max"), (5,), (4, 3)),
    "sddmm": (lambda place, x, y: gt.sddmm(matrix(place, None), x, y).values, (3, 2), (4, 2)),
    "softmax": (lambda place, v, s: s * gt.edge_softmax(matrix(place, v)).values, (2, 5), (2, 5)),
    "attention": (
        lambda place, q, k: gt.attention(matrix(place, None), q / 4, k / 4, k),
        (2, 3, 4),
        (2, 4, 4),
    ),
    "segments": (lambda place, x, y: y * gt.segment_reduce(x, place(CROW)), (5, 2), (3, 2)),
    "edges": (
        lambda place, v, x: gt.spmm(gt.from_edge_index(place(torch.stack([COL, COL])), v), x),
        (5,),
        (4, 3),
    ),
    "scattered": (
        lambda place, x, w: gt.gather_multiply_scatter(x, w, *map(place, SCATTER), 3),
        (4, 3),
        (2, 3, 2),
    ),
    "relations": (
        lambda place, x, w: gt.relational_spmm(
            gt.RelationalMatrix([matrix(place, place(VALUES)), matrix(place, place(2 * VALUES))]),
            x,
            w,
        ),
        (4, 3),
        (2, 3, 2),
    ),
    "program": (lambda place, x, s: gt.custom_op(SCALE_ROWS)(x, s), (3, 2), (3,)),
}


def results_of(call, place, operands):
    leaves = [place(operand).requires_grad_() for operand in operands]
    result = call(place, *leaves)
    weights = place(torch.arange(1.0, 1 + result.numel()).reshape(result.shape))
    gradients = torch.autograd.grad((result * weights).sum(), leaves)
    return [result.detach(), *gradients]


@pytest.mark.parametrize("name", CALLS)
def test_results_and_gradients_are_those_of_the_cpu(gpu, name):
    call, *shapes = CALLS[name]
    operands = [integers(*shape) for shape in shapes]
    expected = results_of(call, torch.clone, operands)
    results = results_of(call, GpuTensor, operands)
    assert {type(result) for result in results} == {GpuTensor}
    for result, wanted in zip(results, expected, strict=True):
        torch.testing.assert_close(result.cpu(), wanted)


def test_a_call_uses_the_tensors_where_they_are_and_waits_for_nothing(gpu):
    A, X = matrix(GpuTensor, GpuTensor(VALUES)), GpuTensor(integers(4, 3))
    gt.spmm(A, X)  # copies the pattern, and compiles the kernel
    X.cpu()
    before, launches = len(gpu.calls), len(gpu.launches)
    C = torch.ops.gossamer.spmm(A.values, X, A.crow, A.col, 4, False)
    called = gpu.calls[before:]
    assert not {name for name in called if name in WAITS or "Memcpy" in name}
    assert [stream for *_, stream in gpu.launches[launches:]] == [STREAM]
    torch.testing.assert_close(C.cpu(), gt.spmm(matrix(torch.clone, VALUES), X.cpu()))


def test_second_gradients_run_on_the_gpu(gpu):
    def second(place):
        values, X = place(VALUES).requires_grad_(), place(integers(4, 2) * 0 + 2).requires_grad_()
        C = gt.spmm(matrix(place, values), X)
        (first,) = torch.autograd.grad(C.square().sum(), X, create_graph=True)
        return torch.autograd.grad(first.square().sum(), values)[0]

    torch.testing.assert_close(second(GpuTensor).cpu(), second(torch.clone))


def test_narrow_values_are_computed_in_float32(gpu):
    values, X = VALUES.bfloat16(), integers(4, 3).bfloat16()
    C = gt.spmm(matrix(GpuTensor, GpuTensor(values)), GpuTensor(X))
    assert C.dtype == torch.bfloat16
    assert torch.equal(C.cpu(), gt.spmm(matrix(torch.clone, values), X))


def test_a_write_to_an_index_tensor_is_noticed(gpu):
    crow, col = pattern(GpuTensor)
    A = gt.SparseMatrix(crow, col, GpuTensor(VALUES), shape=(3, 4))
    X = integers(4, 3)
    gt.spmm(A, GpuTensor(X))
    col[0] = 2
    changed = gt.SparseMatrix(CROW, col.cpu(), VALUES, shape=(3, 4))
    assert torch.equal(gt.spmm(A, GpuTensor(X)).cpu(), gt.spmm(changed, X))


def test_matrices_without_elements(gpu):
    empty = gt.SparseMatrix(
        GpuTensor(torch.zeros(3, dtype=torch.int64)),
        GpuTensor(torch.zeros(0, dtype=torch.int64)),
        GpuTensor(torch.zeros(0)),
        shape=(2, 4),
    )
    X = GpuTensor(integers(4, 3))
    assert torch.equal(gt.spmm(empty, X).cpu(), torch.zeros(2, 3))
    assert gt.sddmm(empty, GpuTensor(integers(2, 3)), X).values.cpu().shape == (0,)
    assert gt.edge_softmax(empty).values.cpu().shape == (0,)


MIXED = {
    "'X' is on the device 'cpu', the matrix on 'cuda:0'": lambda A, X: gt.spmm(A, X.cpu()),
    "'x' is on the device 'cpu', the matrix on": lambda A, X: gt.spmv(A, X.cpu()[:, 0]),
    "'Y' is on the device 'cpu', the matrix on": lambda A, X: gt.sddmm(A, X[:3], X.cpu()),
    "'K' is on the device 'cpu', the matrix on": lambda A, X: gt.attention(A, X[:3], X.cpu(), X),
    "'col' is on the device 'cpu', 'crow' on": lambda A, X: gt.SparseMatrix(
        A.crow, COL, shape=(3, 4)
    ),
    "'values' is on the device 'cpu', 'col' on": lambda A, X: A.with_values(VALUES),
    "'offsets' is on the device 'cpu', 'data' on": lambda A, X: gt.segment_reduce(A.values, CROW),
    "'s' is on the device 'cpu', 'x' on": lambda A, X: gt.custom_op(SCALE_ROWS)(X, torch.ones(4)),
    "'weights' is on the device 'cpu', 'x' on": lambda A, X: gt.gather_multiply_scatter(
        X, torch.ones(1, 3, 2), None, None, GpuTensor(torch.tensor([0, 4])), 4
    ),
}


@pytest.mark.parametrize("message", MIXED)
def test_operands_that_a_kernel_cannot_take_are_refused_by_name(gpu, message):
    A, X = matrix(GpuTensor, GpuTensor(VALUES)), GpuTensor(integers(4, 3))
    with pytest.raises(ArgumentError, match=message) as caught:
        MIXED[message](A, X)
    assert caught.value.code == "operand.device"


def test_an_operator_without_a_kernel_for_gpus_refuses_their_tensors_by_name(gpu):
    @torch_operator("negative_of_test", new_result=lambda x: torch.empty_like(x))
    def negative(x: torch.Tensor) -> torch.Tensor:
        return -x

    message = "'x' is on the device 'cuda:0', and 'negative_of_test' has kernels for the CPU only"
    with pytest.raises(ArgumentError, match=message):
        negative(GpuTensor(VALUES))


def test_a_layer_runs_on_the_gpu(gpu):
    edges, x = torch.tensor([[0, 1, 2, 2], [1, 0, 0, 1]]), integers(3, 4)
    layer = GCNConv(4, 2)
    expected = layer(x, edges)
    for name, weight in [*layer.named_parameters()]:
        owner = layer.lin if name.startswith("lin") else layer
        setattr(owner, name.removeprefix("lin."), torch.nn.Parameter(GpuTensor(weight.detach())))
    torch.testing.assert_close(layer(GpuTensor(x), GpuTensor(edges)).cpu(), expected.detach())


def test_formats_are_prepared_for_the_cpu_only(gpu):
    layer = SparseLinear.prune(torch.nn.Linear(4, 2))
    layer.values = torch.nn.Parameter(GpuTensor(layer.values.detach()))
    with pytest.raises(ArgumentError, match="'values' is on the device 'cuda:0'; expected 'cpu'"):
        layer.prepare(tokens=2)


def test_without_a_backend_tensors_of_a_gpu_are_refused(gpu, monkeypatch):
    monkeypatch.setattr(resolve_target, "registry", Registry(group="gossamer.no_plugins"))
    with pytest.raises(ArgumentError, match="'crow' is on the device 'cuda:0', and no backend"):
        matrix(GpuTensor, GpuTensor(VALUES))


def test_fake_results_are_on_the_device_of_the_operands():
    with FakeTensorMode():

        def fake(*shape, dtype=torch.float32):
            return torch.empty(shape, dtype=dtype, device="cuda:1")

        arrays = [fake(size, dtype=torch.int64) for size in (4, 5)]
        values, X, heads = fake(5), fake(4, 3), fake(2, 4, 3)
        ops = torch.ops.gossamer
        results = {
            ops.spmm(values, X, *arrays, 4, False): (3, 3),
            ops.sddmm(fake(3, 3), X, *arrays): (5,),
            ops.row_softmax(values, *arrays, 4): (5,),
            ops.attention(fake(2, 3, 3), heads, heads, *arrays, 1.0): (2, 3, 3),
        }
    for result, shape in results.items():
        assert (result.device, result.shape) == (torch.device("cuda:1"), shape)
