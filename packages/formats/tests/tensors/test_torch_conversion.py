"""Tensors from and to torch. Tests that need torch are skipped without it; refusals use a stand-in."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

from gossamer_formats import from_arrays, from_scipy, from_torch, to_torch
from gossamer_ir.errors import FormatError

needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
# torch warns once that it does not check invariants, and that CSR is new.
quiet = pytest.mark.filterwarnings("ignore:Sparse")

MATRIX = sparse.random_array((6, 8), density=0.3, rng=np.random.default_rng(5)).toarray()


def torch_matrix(layout, *, dtype="float64"):
    import torch

    dense = torch.from_numpy(MATRIX).to(getattr(torch, dtype))
    return {
        "csr": dense.to_sparse_csr,
        "csc": dense.to_sparse_csc,
        "bsr": lambda: dense.to_sparse_bsr((2, 4)),
        "coo": dense.to_sparse,
    }[layout]()


def values_of(tensor):
    return tensor._values() if str(tensor.layout) == "torch.sparse_coo" else tensor.values()


@needs_torch
@quiet
@pytest.mark.parametrize("layout", ["csr", "csc", "bsr", "coo"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("copy", [True, False])
def test_a_layout_is_kept_in_both_directions(layout, dtype, copy):
    source = torch_matrix(layout, dtype=dtype)
    tensor = from_torch(source, copy=copy)
    assert (tensor.format, tensor.dtype, tensor.is_borrowed) == (layout, dtype, not copy)
    np.testing.assert_array_equal(tensor.toarray(), MATRIX.astype(dtype))
    back = to_torch(tensor, copy=copy)
    assert back.layout == source.layout
    np.testing.assert_array_equal(back.to_dense().numpy(), MATRIX.astype(dtype))
    is_shared = values_of(back).data_ptr() == values_of(source).data_ptr()
    assert is_shared == (not copy)


@needs_torch
@quiet
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8"])
def test_narrow_values_are_kept_in_both_directions(dtype):
    import torch

    dense = torch.tensor([[0.0, 1.5, -3.0], [127.0, 0.0, 0.0]]).to(getattr(torch, dtype))
    source = dense.to_sparse_csr()
    tensor = from_torch(source)
    assert tensor.value_dtype == dtype
    np.testing.assert_array_equal(tensor.toarray(), dense.to(torch.float32).numpy())
    back = to_torch(tensor)
    assert back.dtype == source.dtype
    assert torch.equal(back.values(), source.values())


@needs_torch
@quiet
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8"])
def test_values_are_converted_as_torch_does(dtype):
    import torch

    values = torch.tensor([[0.1, 1.00390625, 1.01171875, -2.5, 100.75]], dtype=torch.float64)
    tensor = from_torch(values.to_sparse_csr(), dtype=dtype)
    expected = values.to(getattr(torch, dtype)).to(torch.float64).numpy()
    np.testing.assert_array_equal(tensor.toarray(), expected)


@needs_torch
@quiet
def test_indices_of_32_bits_are_kept():
    import torch

    matrix = torch_matrix("csr")
    parts = (matrix.crow_indices().int(), matrix.col_indices().int(), matrix.values())
    tensor = from_torch(torch.sparse_csr_tensor(*parts, matrix.shape))
    assert tensor.arrays["indices"].dtype == tensor.arrays["indptr"].dtype == "int32"
    assert to_torch(tensor).col_indices().dtype == torch.int32


@needs_torch
@quiet
def test_coordinates_that_are_not_coalesced_and_of_three_dimensions():
    import torch

    indices = torch.tensor([[2, 0, 2], [1, 1, 1]])
    tensor = from_torch(torch.sparse_coo_tensor(indices, torch.ones(3), (3, 3)))
    assert tensor.nnz == 3
    assert tensor.toarray()[2, 1] == 2
    dense = torch.zeros(2, 3, 4)
    dense[1, 2, 3] = 5
    tensor = from_torch(dense.to_sparse())
    assert to_torch(tensor.asformat("csf")).to_dense().equal(dense)


@needs_torch
@quiet
def test_what_torch_cannot_hold_is_converted():
    import torch

    tensors = [
        from_scipy(sparse.csr_array(MATRIX)).asformat("sell", height=2),
        from_scipy(sparse.csr_array(MATRIX)).asformat("bsr", block_rows=4, block_columns=3),
        from_arrays(
            "csr",
            (1, 3),
            indptr=torch.tensor([0, 3]),
            indices=torch.tensor([2, 0, 2], dtype=torch.int32),
            data=torch.ones(3, dtype=torch.float64),
        ),
    ]
    for tensor in tensors:
        exported = to_torch(tensor)
        assert exported.layout == torch.sparse_csr
        np.testing.assert_array_equal(exported.to_dense().numpy(), tensor.toarray())


@needs_torch
@quiet
def test_what_torch_could_change_or_must_not_read_is_not_shared():
    unsorted = sparse.csr_array((np.ones(2), [1, 0], [0, 2]), shape=(1, 2))
    for tensor, message in (
        (from_scipy(unsorted), "owns its arrays"),
        (from_scipy(unsorted, copy=False), "torch refuses"),
        (from_scipy(unsorted).asformat("ell"), "must be converted"),
    ):
        with pytest.raises(FormatError, match=message) as caught:
            to_torch(tensor, copy=False)
        assert caught.value.code == "format.copy"
    assert to_torch(from_scipy(unsorted, copy=False)).col_indices().tolist() == [0, 1]


@needs_torch
@quiet
def test_values_are_converted_on_request_and_gradients_are_left():
    import torch

    matrix = (100 * torch_matrix("coo")).to(torch.int32)
    with pytest.raises(FormatError, match="dtype int32") as caught:
        from_torch(matrix)
    assert caught.value.code == "format.dtype"
    assert from_torch(matrix, dtype="float32").dtype == "float32"
    with pytest.raises(FormatError) as caught:
        from_torch(matrix, dtype="float32", copy=False)
    assert caught.value.code == "format.copy"
    assert from_torch(torch_matrix("csr").requires_grad_()).nnz == np.count_nonzero(MATRIX)


@needs_torch
@quiet
def test_an_array_that_torch_does_not_export_is_refused():
    import torch

    with pytest.raises(FormatError, match="require gradient") as caught:
        from_arrays(
            "coo", (3,), indices_0=torch.tensor([1]), data=torch.ones(1, requires_grad=True)
        )
    assert caught.value.code == "format.dlpack"


class StandIn:
    """As much of a torch tensor as is read before it is refused."""

    def __init__(self, layout, *, device="cpu", shape=(2, 2), dense=0):
        self.layout, self.shape = layout, shape
        self.device = SimpleNamespace(type=device)
        self.dense_dim = lambda: dense


@pytest.mark.parametrize(
    ("code", "tensor"),
    [
        ("format.torch.layout", StandIn("torch.strided")),
        ("format.torch.layout", StandIn("torch.sparse_bsc")),
        ("format.torch.device", StandIn("torch.sparse_csr", device="cuda")),
        ("format.dimensions", StandIn("torch.sparse_csr", shape=(2, 2, 2))),
        ("format.dimensions", StandIn("torch.sparse_coo", dense=1)),
        ("format.kind", MATRIX),
    ],
)
def test_a_tensor_that_cannot_be_read_is_refused(code, tensor, monkeypatch):
    torch = ModuleType("torch")
    torch.Tensor = StandIn
    monkeypatch.setitem(sys.modules, "torch", torch)
    with pytest.raises(FormatError) as caught:
        from_torch(tensor)
    assert caught.value.code == code


def test_without_torch_a_sentence_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(FormatError, match="torch is not installed") as caught:
        to_torch(from_scipy(sparse.eye_array(2)))
    assert caught.value.code == "format.torch.missing"
    with pytest.raises(FormatError, match="expected a sparse tensor of torch"):
        from_torch(np.ones(3))


def test_torch_is_not_imported_unless_it_is_needed():
    program = (
        "import sys, gossamer_formats as f, scipy.sparse as s\n"
        "f.to_scipy(f.from_scipy(s.eye_array(2)))\n"
        "try: f.from_torch(1)\n"
        "except Exception: pass\n"
        "print('torch' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True, text=True, check=True,
        env={"PYTHONPATH": ":".join(sys.path)},
    )  # fmt: skip
    assert done.stdout == "False\n"


class Exporter:
    """An array that is exported by DLPack only."""

    def __init__(self, array, *, device=1, error=None):
        self.array, self.device, self.error = array, device, error

    def __dlpack_device__(self):
        return self.device, 0

    def __dlpack__(self, **options):
        if self.error is not None:
            raise self.error
        return self.array.__dlpack__(**options)


def test_components_are_taken_from_any_library_that_exports_them():
    tensor = from_arrays(
        "coo", (3,), indices_0=Exporter(np.array([1])), data=Exporter(np.array([2.0]))
    )
    assert tensor.toarray().tolist() == [0, 2, 0]
    assert tensor.arrays["data"].__dlpack_device__() == (1, 0)
    for exporter, code in (
        (Exporter(np.ones(1), device=2), "format.device"),
        (Exporter(np.ones(1), error=BufferError("it is locked")), "format.dlpack"),
    ):
        with pytest.raises(FormatError) as caught:
            from_arrays("coo", (3,), indices_0=np.array([1]), data=exporter)
        assert caught.value.code == code
