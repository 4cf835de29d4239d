"""Operators on arrays of a device with a memory of its own, by the plugin of `tests/plugins/separate`."""

from __future__ import annotations

import numpy as np
import pytest
from acme_separate import memory as device_memory
from acme_separate.backend import SeparateMemory
from acme_separate.memory import STORAGE, SeparateArray, to_device, to_host
from acme_separate.stream import DEFAULT
from scipy import sparse

import gossamer as gs
from gossamer.targets import resolve_target
from gossamer_backend import Device
from gossamer_ir.errors import ArgumentError
from tests.integration.separate_memory import install_separate_memory

TARGET = "separate-memory"
ROWS, COLUMNS, FEATURES = 5, 4, 3


@pytest.fixture(autouse=True)
def installed(tmp_path, monkeypatch):
    install_separate_memory(tmp_path, monkeypatch)


def matrix_of(dtype=np.float32):
    matrix = sparse.random_array((ROWS, COLUMNS), density=0.4, format="csr", rng=1, dtype=dtype)
    matrix.data[:] = np.arange(1, matrix.nnz + 1)
    return matrix


def on_device(matrix):
    arrays = (to_device(array) for array in (matrix.indptr, matrix.indices, matrix.data))
    return gs.CsrArrays(matrix.shape, *arrays)


def integers(*shape, dtype=np.float32):
    return np.random.default_rng(len(shape)).integers(-3, 4, shape).astype(dtype)


def result_of(array):
    assert type(array) is SeparateArray
    DEFAULT.synchronize()
    return to_host(array)


def sampled(matrix, left, right):
    rows, columns = matrix.nonzero()
    return np.einsum("ij,ij->i", left[rows], right[columns])


CALLS = {
    "spmm": ((COLUMNS, FEATURES),),
    "spmv": ((COLUMNS,),),
    "sddmm": ((ROWS, FEATURES), (COLUMNS, FEATURES)),
}
EXPECTED = {"spmm": lambda A, B: A @ B, "spmv": lambda A, x: A @ x, "sddmm": sampled}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", CALLS)
def test_results_are_arrays_of_the_device(name, dtype):
    matrix, dense = matrix_of(dtype), [integers(*shape, dtype=dtype) for shape in CALLS[name]]
    arrays, copied = [to_device(array) for array in dense], STORAGE.copied
    result = getattr(gs, name)(on_device(matrix), *arrays, target=TARGET)
    DEFAULT.synchronize()
    assert STORAGE.copied == copied
    assert (type(result), result.dtype) == (SeparateArray, dtype)
    np.testing.assert_array_equal(to_host(result), EXPECTED[name](matrix, *dense))


@pytest.mark.parametrize("name", CALLS)
def test_an_output_of_the_device_is_written(name):
    matrix, dense = matrix_of(), [integers(*shape) for shape in CALLS[name]]
    expected = EXPECTED[name](matrix, *dense)
    out, arrays = to_device(np.full(expected.shape, np.nan, np.float32)), map(to_device, dense)
    assert getattr(gs, name)(on_device(matrix), *arrays, out=out, target=TARGET) is out
    np.testing.assert_array_equal(result_of(out), expected)


def test_results_are_scaled_and_added():
    matrix, dense, old = matrix_of(), integers(COLUMNS, FEATURES), integers(ROWS, FEATURES)
    A, B, out = on_device(matrix), to_device(dense), to_device(old)
    scaled = gs.spmm(A, B, alpha=2, target=TARGET)
    np.testing.assert_array_equal(result_of(scaled), 2 * (matrix @ dense))
    gs.spmm(A, B, alpha=2, beta=1, out=out, target=TARGET)
    np.testing.assert_array_equal(result_of(out), 2 * (matrix @ dense) + old)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("alpha", "beta"), [(1, 3), (-2, 0.5), (0, -1), (3, 0)])
def test_results_take_any_factors(alpha, beta, dtype):
    matrix = matrix_of(dtype)
    dense, old = integers(COLUMNS, FEATURES, dtype=dtype), integers(ROWS, FEATURES, dtype=dtype)
    A, B, out = on_device(matrix), to_device(dense), to_device(old)
    x, y = to_device(dense[:, 0].copy()), to_device(old[:, 0].copy())
    copied, expected = STORAGE.copied, alpha * (matrix @ dense) + beta * old
    gs.spmm(A, B, alpha=alpha, beta=beta, out=out, target=TARGET)
    gs.spmv(A, x, alpha=alpha, beta=beta, out=y, target=TARGET)
    DEFAULT.synchronize()
    assert STORAGE.copied == copied
    np.testing.assert_array_equal(to_host(out), expected)
    np.testing.assert_array_equal(to_host(y), expected[:, 0])


def test_nothing_is_scaled_if_a_product_is_refused():
    old = integers(ROWS, FEATURES)
    A, B, out = on_device(matrix_of()), to_device(integers(COLUMNS, FEATURES)), to_device(old)
    with pytest.raises(ArgumentError):
        gs.spmm(wrong_columns(A, B)[0], B, beta=3, out=out, target=TARGET)
    np.testing.assert_array_equal(result_of(out), old)


def attended(matrix, Q, K, V, scale):
    """Return the result of attention in float64, row by row."""
    scores = scale * (Q.astype(np.float64) @ K.T)
    result = np.zeros((matrix.shape[0], Q.shape[1]))
    for row in range(matrix.shape[0]):
        columns = matrix.indices[matrix.indptr[row] : matrix.indptr[row + 1]]
        if columns.size:
            weights = np.exp(scores[row, columns] - scores[row, columns].max())
            result[row] = weights / weights.sum() @ V[columns]
    return result


@pytest.mark.parametrize("scale", [None, 0.25])
def test_attention_runs_on_the_device(scale):
    matrix = matrix_of()
    dense = [integers(size, FEATURES) for size in (ROWS, COLUMNS, COLUMNS)]
    arrays, copied = map(to_device, dense), STORAGE.copied
    result = gs.attention(on_device(matrix), *arrays, scale, target=TARGET)
    DEFAULT.synchronize()
    assert STORAGE.copied == copied
    expected = attended(matrix, *dense, FEATURES**-0.5 if scale is None else scale)
    np.testing.assert_allclose(to_host(result), expected, rtol=FEATURES * 1e-6, atol=1e-6)


@pytest.mark.parametrize("heads", [(2,), (3, 2), (0, 2), (1, 1, 1)])
def test_attention_has_heads_and_batches_on_the_device(heads):
    matrix = matrix_of()
    dense = [integers(*heads, size, FEATURES) for size in (ROWS, COLUMNS, COLUMNS)]
    arrays, copied = [to_device(array) for array in dense], STORAGE.copied
    result = gs.attention(on_device(matrix), *arrays, target=TARGET)
    out = to_device(np.full(result.shape, np.nan, np.float32))
    assert gs.attention(on_device(matrix), *arrays, 0.5, out=out, target=TARGET) is out
    DEFAULT.synchronize()
    assert STORAGE.copied == copied
    assert result.shape == (*heads, ROWS, FEATURES)
    for array, scale in ((result, FEATURES**-0.5), (out, 0.5)):
        expected = np.zeros(result.shape)
        for head in np.ndindex(heads):
            expected[head] = attended(matrix, *(each[head] for each in dense), scale)
        np.testing.assert_allclose(to_host(array), expected, rtol=FEATURES * 1e-6, atol=1e-6)


def test_heads_on_a_device_must_agree():
    matrix, operands = on_device(matrix_of()), [(2, ROWS, FEATURES), *2 * [(3, COLUMNS, FEATURES)]]
    arrays = [to_device(integers(*shape)) for shape in operands]
    with pytest.raises(
        ArgumentError, match=r"'K' has the shape \(3, 4, 3\); expected \(2,\)"
    ) as caught:
        gs.attention(matrix, *arrays, target=TARGET)
    assert caught.value.code == "operand.heads"
    with pytest.raises(ArgumentError) as caught:
        gs.attention(matrix, arrays[0], *2 * [integers(2, COLUMNS, FEATURES)], target=TARGET)
    assert caught.value.code == "operand.device"
    out = SeparateArray((2, ROWS, FEATURES + 1), np.float32)
    right = [to_device(integers(2, COLUMNS, FEATURES)) for _ in "KV"]
    with pytest.raises(ArgumentError) as caught:
        gs.attention(matrix, arrays[0], *right, out=out, target=TARGET)
    assert caught.value.code == "operand.shape"


def test_a_bound_operator_reads_the_arrays_again():
    matrix, dense = matrix_of(), integers(COLUMNS, FEATURES)
    B, out = to_device(dense), SeparateArray((ROWS, FEATURES), np.float32)
    step = gs.spmm.bind(on_device(matrix), B, out=out, target=TARGET)
    for factor in (1, 10):
        STORAGE.elements(B.address, B.shape, B.dtype)[...] = factor * dense
        step()
        np.testing.assert_array_equal(result_of(out), factor * (matrix @ dense))


@pytest.mark.parametrize("shape", [(0, COLUMNS), (ROWS, 0), (ROWS, COLUMNS)])
def test_matrices_without_elements_give_zeros(shape):
    matrix, dense = sparse.csr_array(shape, dtype=np.float32), integers(shape[1], FEATURES)
    result = gs.spmm(on_device(matrix), to_device(dense), target=TARGET)
    np.testing.assert_array_equal(result_of(result), np.zeros((shape[0], FEATURES), np.float32))


class LibraryMatrix:
    """A matrix of another package, with the attributes of SciPy's."""

    format = "csr"

    def __init__(self, matrix):
        self.shape = matrix.shape
        self.indptr, self.indices = to_device(matrix.indptr), to_device(matrix.indices)
        self.data = to_device(matrix.data)


def test_matrices_of_other_packages_are_taken():
    matrix, dense = matrix_of(), integers(COLUMNS, FEATURES)
    result = gs.spmm(LibraryMatrix(matrix), to_device(dense), target=TARGET)
    np.testing.assert_array_equal(result_of(result), matrix @ dense)


MIXED = {
    "a dense operand of the host": lambda A, B: (on_device(A), B, None),
    "a matrix of the host": lambda A, B: (A, to_device(B), None),
    "a tensor": lambda A, B: (gs.from_scipy(A), to_device(B), None),
    "parts of the host": lambda A, B: (gs.decompose(A, "hyb", k=2), to_device(B), None),
    "a matrix that is in two places": lambda A, B: (
        on_device(A)._replace(indices=A.indices),
        to_device(B),
        None,
    ),
    "an output of the host": lambda A, B: (
        on_device(A),
        to_device(B),
        np.empty((ROWS, FEATURES), np.float32),
    ),
}


@pytest.mark.parametrize("operands_of", MIXED.values(), ids=MIXED)
def test_operands_on_several_devices_are_refused(operands_of):
    A, B, out = operands_of(matrix_of(), integers(COLUMNS, FEATURES))
    with pytest.raises(ArgumentError, match="The operands are on several devices: ") as caught:
        gs.spmm(A, B, out=out, target=TARGET)
    assert caught.value.code == "operand.device"
    if out is not None:
        with pytest.raises(ArgumentError, match="out on 'cpu'"):
            gs.spmm.bind(A, B, out=out, target=TARGET)


def test_a_target_of_the_host_is_refused():
    A, B = on_device(matrix_of()), to_device(integers(COLUMNS, FEATURES))
    with pytest.raises(ArgumentError, match="'generic-cpu' run on the host") as caught:
        gs.spmm(A, B)
    assert caught.value.code == "operand.device"


def wrong_columns(A, B):
    columns = to_host(A.indices)
    columns[2] = COLUMNS
    return A._replace(indices=to_device(columns)), B, None


WRONG = {
    "operand.dtype": lambda A, B: (A, to_device(to_host(B).astype(np.float64)), None),
    "operand.shape": lambda A, B: (A._replace(shape=(ROWS, COLUMNS + 1)), B, None),
    "kernel.range": wrong_columns,
}
OF_ARRAYS = {
    "rows": lambda A, B: (A._replace(shape=(ROWS + 1, COLUMNS)), B, None),
    "values": lambda A, B: (A._replace(data=to_device(np.ones(1, np.float32))), B, None),
    "output": lambda A, B: (A, B, SeparateArray((ROWS, FEATURES + 1), np.float32)),
}


@pytest.mark.parametrize(
    ("code", "operands_of"),
    [*WRONG.items(), *(("operand.shape", item) for item in OF_ARRAYS.values())],
)
def test_wrong_arrays_are_refused(code, operands_of):
    A, B, out = operands_of(on_device(matrix_of()), to_device(integers(COLUMNS, FEATURES)))
    with pytest.raises(ArgumentError) as caught:
        gs.spmm(A, B, out=out, target=TARGET)
    assert caught.value.code == code


def test_the_dtypes_of_a_matrix_and_an_output_are_checked():
    A, B = on_device(matrix_of()), to_device(integers(COLUMNS, FEATURES))
    with pytest.raises(ArgumentError, match="'indptr' of the matrix has the dtype float32"):
        gs.spmm(A._replace(indptr=to_device(np.zeros(ROWS + 1, np.float32))), B, target=TARGET)
    with pytest.raises(ArgumentError, match="'out' has the dtype float64; expected float32"):
        gs.spmm(A, B, out=SeparateArray((ROWS, FEATURES), np.float64), target=TARGET)


class WithoutArrays:
    """The backend without the optional ability to make arrays."""

    def __init__(self, backend):
        self.backend = backend

    def __getattr__(self, name):
        if name in ("new_array", "to_device"):
            raise AttributeError(name)
        return getattr(self.backend, name)


def test_without_a_way_to_allocate_an_output_has_to_be_passed(monkeypatch):
    backend = resolve_target.registry.backend(TARGET)
    monkeypatch.setattr(backend, "wrapped", WithoutArrays(backend.wrapped))
    matrix, dense = matrix_of(), integers(COLUMNS, FEATURES)
    A, B, out = on_device(matrix), to_device(dense), SeparateArray((ROWS, FEATURES), np.float32)
    with pytest.raises(ArgumentError, match=r"cannot make arrays .* Pass out=") as caught:
        gs.spmm(A, B, target=TARGET)
    assert caught.value.code == "operand.allocation"
    with pytest.raises(ArgumentError, match="Leave out alpha and scale"):
        gs.spmm(A, B, alpha=2, out=out, target=TARGET)
    gs.spmm(A, B, out=out, target=TARGET)
    np.testing.assert_array_equal(result_of(out), matrix @ dense)


def test_the_backend_is_told_the_device(monkeypatch):
    monkeypatch.setattr(device_memory, "DEVICE", Device(12, 3))
    A, B = on_device(matrix_of()), to_device(integers(COLUMNS, FEATURES))
    asked = []
    monkeypatch.setattr(
        SeparateMemory, "new_array", lambda self, *form, device: asked.append((*form, device))
    )
    with pytest.raises(ArgumentError, match="on the device 'ext_dev:3'"):
        gs.spmm(A, B, target=TARGET)
    assert asked == [((ROWS, FEATURES), np.float32, (12, 3))]
