"""Products with 2:4 matrices, compared with NumPy's of the dense matrix."""

import numpy as np
import pytest
from scipy import sparse

import gossamer as gs
from gossamer.compilation.build_kernels import KERNELS
from gossamer.operators.n_m_products import block_products, forms
from gossamer_formats import SparseTensor, borrow_scipy, from_arrays
from gossamer_ir.errors import ArgumentError, FormatError
from gossamer_machine import Grid, Machine

DTYPES = {
    "float16": "float32",
    "float32": "float32",
    "float64": "float64",
    "int8": "int32",
    "uint8": "int32",
}
PRECISIONS = {"tfloat32": ("float32", 1, 1), "int4": ("int8", 2, 2), "uint4": ("uint8", 2, 2)}
"""The dtypes of operands, the units of a group that may have nonzeros, and the columns of a unit."""


def n_m_array(rows, columns, dtype, seed=0):
    """A matrix of small integers, so that products are exact, with groups of 0, 1 and 2 nonzeros."""
    rng = np.random.default_rng(seed)
    dense = rng.integers(0, 9, (rows, columns)) - (0 if dtype == "uint8" else 4)
    for begin in range(0, columns, 4):
        width = min(4, columns - begin)
        order = np.argsort(rng.random((rows, width)), axis=1)
        np.put_along_axis(dense[:, begin : begin + width], order[:, 2:], 0, axis=1)
    return dense.astype(dtype)


def array_for(precision, rows, columns):
    """A matrix with the pattern of a precision, and a dense operand with as many columns; both have all
    values of int4 and uint4."""
    dtype, slots, width = PRECISIONS[precision]
    rng = np.random.default_rng(columns)
    least = 0 if precision == "uint4" else -8
    count = -(-columns // (2 * slots * width))
    groups = rng.integers(least, least + 16, (rows, count, 2 * slots, width))
    order = np.argsort(rng.random(groups.shape[:3]), axis=-1)
    np.put_along_axis(groups, order[..., slots:, None], 0, axis=2)
    matrix = groups.reshape(rows, -1)[:, :columns].astype(dtype)
    return matrix, rng.integers(least, least + 16, (columns, 5)).astype(dtype)


def dense_operand(rows, columns, dtype, seed=1):
    least = 0 if dtype == "uint8" else -4
    return np.random.default_rng(seed).integers(least, least + 9, (rows, columns)).astype(dtype)


SHAPES = [(1, 1, 1), (5, 8, 3), (16, 32, 8), (17, 34, 9), (3, 7, 40), (2, 2, 2), (9, 12, 150)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("m", "n", "k"), SHAPES)
def test_the_product_is_that_of_the_dense_matrix(m, n, k, dtype):
    A, B = n_m_array(m, n, dtype), dense_operand(n, k, dtype)
    product = gs.matmul_24(A, B)
    assert product.dtype == DTYPES[dtype]
    np.testing.assert_array_equal(product, A.astype(np.int64) @ B.astype(np.int64))


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("columns", [1, 8, 43])
def test_the_product_in_another_precision_is_that_of_the_dense_matrix(columns, precision):
    A, B = array_for(precision, 7, columns)
    product = gs.matmul_24(A, B, precision)
    assert product.dtype == ("float32" if precision == "tfloat32" else "int32")
    np.testing.assert_array_equal(product, A.astype(np.int64) @ B.astype(np.int64))
    np.testing.assert_array_equal(gs.matmul_24(sparse.csr_array(A), B, dtype=precision), product)


FLOAT8 = {
    "float8_e4m3": {0: 0x00, 1: 0x38, 2: 0x40, 3: 0x44, -1: 0xB8, -4: 0xC8},
    "float8_e5m2": {0: 0x00, 1: 0x3C, 2: 0x40, 3: 0x42, -1: 0xBC, -4: 0xC4},
}
"""The bits of small integers."""


@pytest.mark.parametrize("precision", FLOAT8)
def test_bits_of_float8_are_multiplied_as_floats(precision):
    values = np.array([*FLOAT8[precision]])
    bits = np.array([*FLOAT8[precision].values()], np.uint8)
    A = np.random.default_rng(3).integers(0, len(bits), (5, 18))
    A[:, 1::4] = A[:, 2::4] = 0
    B = np.random.default_rng(4).integers(0, len(bits), (18, 3))
    product = gs.matmul_24(bits[A], bits[B], precision)
    assert product.dtype == np.float32
    np.testing.assert_array_equal(product, values[A] @ values[B])


def test_a_zero_of_float8_may_have_a_sign_and_nan_is_an_element():
    A = np.array([[0x80, 0x80, 0x38, 0x40]], np.uint8)
    ones = np.full((4, 1), 0x38, np.uint8)
    assert gs.matmul_24(A, ones, "float8_e4m3").item() == 3
    A[0, 0] = 0x7F
    with pytest.raises(FormatError, match="Row 0 has 3 nonzeros"):
        gs.matmul_24(A, ones, "float8_e4m3")
    A[0, 2] = 0
    assert np.isnan(gs.matmul_24(A, ones, "float8_e4m3").item())


def test_factors_are_rounded_to_tf32_only_if_that_is_named():
    A, B = np.array([[2049, 0]], np.float32), np.array([[1], [1]], np.float32)
    assert gs.matmul_24(A, B).item() == 2049
    # A tie is rounded away from zero.
    assert gs.matmul_24(A, B, "tfloat32").item() == 2050


def test_a_product_in_int4_is_bound():
    A, B = array_for("int4", 5, 16)
    out = np.empty((5, 5), np.int32)
    gs.matmul_24.bind(A, B, "int4", out=out)()
    np.testing.assert_array_equal(out, A.astype(int) @ B)


@pytest.mark.parametrize("value", [8, -9])
def test_a_dense_operand_that_is_not_of_int4_is_refused(value):
    A, B = array_for("int4", 3, 8)
    B[7, 4] = value
    with pytest.raises(ArgumentError, match=f"Element 39 of 'b' is {value}") as caught:
        gs.matmul_24(A, B, "int4")
    assert caught.value.code == "kernel.range"


@pytest.mark.parametrize(("m", "n", "k"), [(0, 4, 2), (3, 0, 2), (3, 4, 0)])
def test_empty_operands_have_a_product(m, n, k):
    product = gs.matmul_24(np.zeros((m, n)), np.ones((n, k)))
    np.testing.assert_array_equal(product, np.zeros((m, k)))


def test_the_matrix_may_have_any_form():
    A, B = n_m_array(9, 18, "float32"), dense_operand(18, 5, "float32")
    forms = [
        gs.prune(A, "2:4"),
        sparse.csr_array(A),
        sparse.coo_array(A),
        SparseTensor(sparse.csr_array(A)),
        np.asfortranarray(A),
        np.repeat(A, 2, axis=1)[:, ::2],
    ]
    for form in forms:
        np.testing.assert_array_equal(gs.matmul_24(form, B), A @ B)


def test_the_dense_operand_may_have_any_strides_and_be_read_only():
    A, B = n_m_array(9, 18, "float32"), dense_operand(18, 5, "float32")
    frozen = B.copy()
    frozen.setflags(write=False)
    for form in (np.asfortranarray(B), np.repeat(B, 2, axis=0)[::2], frozen):
        np.testing.assert_array_equal(gs.matmul_24(A, form), A @ B)


def test_a_tensor_is_compressed_once():
    A = gs.prune(np.random.default_rng(0).standard_normal((8, 16)), "2:4")
    B = np.ones((16, 2))
    first = gs.matmul_24(A, B)
    kept = len(A.memo)
    np.testing.assert_array_equal(gs.matmul_24(A, B), first)
    assert len(A.memo) == kept > 0


@pytest.mark.parametrize("features", [2, 64])
def test_elements_of_a_tensor_that_borrows_its_arrays_may_change(features):
    matrix = sparse.csr_array(np.array([[1.0, 0, 2, 0], [0, 3, 0, 4]]))
    tensor = SparseTensor.from_borrowed(borrow_scipy(matrix))
    B = np.ones((4, features))
    for target in (None, "generic-cpu:vector_bits=512"):
        for _ in range(2):
            matrix.data *= 2
            expected = matrix @ B
            np.testing.assert_array_equal(gs.matmul_24(tensor, B, target=target), expected)
            out = np.empty((2, features))
            gs.matmul_24.bind(tensor, B, out=out)()
            np.testing.assert_array_equal(out, expected)


def test_pruning_keeps_the_largest_of_each_group():
    weights = np.random.default_rng(3).standard_normal((8, 16))
    pruned = gs.prune(weights, "2:4")
    B = np.random.default_rng(4).standard_normal((16, 3))
    dense = pruned.toarray()
    assert (np.count_nonzero(dense.reshape(8, 4, 4), axis=2) == 2).all()
    bound = 16 * np.finfo(float).eps * (abs(dense) @ abs(B))
    assert (abs(gs.matmul_24(pruned, B) - dense @ B) <= bound).all()


def test_nan_and_infinity_of_the_matrix_are_elements():
    A = np.array([[np.nan, 0, np.inf, 0], [0, -0.0, 1, 0]])
    product = gs.matmul_24(A, np.ones((4, 1)))
    np.testing.assert_array_equal(product, [[np.nan], [1.0]])


@pytest.mark.parametrize("form", [lambda A: A, sparse.csr_array])
def test_a_group_with_three_nonzeros_is_named(form):
    A = np.zeros((3, 10), np.float32)
    A[2, 4:7] = 1
    with pytest.raises(FormatError, match=r"Row 2 has 3 nonzeros in the columns 4 to 7") as caught:
        gs.matmul_24(form(A), np.ones((10, 1), np.float32))
    assert caught.value.code == "format.n_m"
    assert "gossamer.prune" in str(caught.value)


@pytest.mark.parametrize(
    ("A", "B", "code"),
    [
        ([[1.0]], np.ones((1, 1)), "operand.kind"),
        (np.ones(4), np.ones((4, 1)), "operand.shape"),
        (np.ones((1, 1), np.int64), np.ones((1, 1), np.int64), "operand.dtype"),
        (np.ones((1, 1)), np.ones((1, 1), np.float32), "operand.dtype"),
        (np.ones((1, 1)), [[1.0]], "operand.kind"),
        (np.ones((1, 1)), np.ones((2, 1)), "operand.shape"),
        (np.ones((1, 1)), np.ones(1), "operand.shape"),
    ],
)
def test_other_operands_are_refused(A, B, code):
    with pytest.raises(ArgumentError) as caught:
        gs.matmul_24(A, B)
    assert caught.value.code == code


def test_a_tensor_of_three_dimensions_is_refused():
    indptr = np.array([0, 1])
    tensor = from_arrays(
        "csf", (2, 3, 4), indptr_1=indptr, indptr_2=indptr,
        indices_0=np.array([0]), indices_1=np.array([1]), indices_2=np.array([2]), data=np.ones(1),
    )  # fmt: skip
    for target in (None, "generic-cpu:vector_bits=512"):
        with pytest.raises(ArgumentError) as caught:
            gs.matmul_24(tensor, np.ones((4, 1)), target=target)
        assert caught.value.code == "operand.shape"


@pytest.mark.parametrize("dtype", ["int4", "int5", ["int4"], np.float64])
def test_another_dtype_of_products_is_refused(dtype):
    with pytest.raises(ArgumentError) as caught:
        gs.matmul_24(np.ones((1, 1)), np.ones((1, 1)), dtype)
    assert caught.value.code == "operand.dtype"


def test_the_result_is_written_to_an_array():
    A, B = n_m_array(3, 8, "int8"), dense_operand(8, 2, "int8")
    out = np.empty((3, 2), np.int32)
    assert gs.matmul_24(A, B, out=out) is out
    np.testing.assert_array_equal(out, A.astype(int) @ B)
    with pytest.raises(ArgumentError, match="expected int32"):
        gs.matmul_24(A, B, out=np.empty((3, 2), np.int8))


def test_explain_names_the_program_by_the_operator():
    for dtype in ("float32", "float16"):
        report = gs.explain("matmul_24", dtypes={"A": dtype, "B": dtype})
        assert report.rule == "n_m_spmm"


def test_a_bound_product_reads_the_dense_operand_again():
    A, B = n_m_array(5, 16, "float32"), dense_operand(16, 3, "float32")
    out = np.empty((5, 3), np.float32)
    step = gs.matmul_24.bind(gs.prune(A, "2:4"), B, out=out)
    B += 1
    step()
    np.testing.assert_array_equal(out, A @ B)


def test_a_bound_product_refuses_a_dense_operand_that_it_would_copy():
    A, B = n_m_array(5, 18, "float32"), dense_operand(18, 3, "float32")
    with pytest.raises(ArgumentError, match=r"has the shape \(18, 3\)") as caught:
        gs.matmul_24.bind(A, B, out=np.empty((5, 3), np.float32))
    assert caught.value.code == "operand.shape"


def test_calls_with_one_variant_share_a_kernel():
    A, B = n_m_array(5, 16, "int8"), dense_operand(16, 7, "int8")
    gs.matmul_24(A, B)
    kept = len(KERNELS)
    gs.matmul_24(n_m_array(9, 32, "int8"), dense_operand(32, 7, "int8"))
    assert len(KERNELS) == kept > 0


@pytest.fixture
def on_a_grid(monkeypatch):
    """The name of a target whose kernels run on this CPU, but whose machine has grids and tensor cores."""
    grid = Grid(warp=32, block_threads=1024, shared_memory=49152, multiprocessors=108)
    machine = Machine(
        grid=grid, block_products=(("int8", "dense"),), n_m_products=(("int8", "sparse"),)
    )
    for module in (forms, block_products):
        monkeypatch.setattr(module, "machine_for", lambda _: machine)
    return "generic-cpu:vector_bits=256"


def test_few_features_are_multiplied_by_the_kernel_for_2_4_on_a_grid(on_a_grid):
    dense, B = n_m_array(64, 64, "int8"), dense_operand(64, 16, "int8")
    product = gs.matmul_24(gs.prune(dense, "2:4"), B, target=on_a_grid)
    np.testing.assert_array_equal(product, dense.astype(np.int32) @ B)


@pytest.mark.parametrize("features", [16, 4096])
def test_many_features_are_multiplied_in_blocks_on_a_grid(features, on_a_grid):
    sizes = {"m": 4096, "groups": 1024, "feat_size": features}
    dtypes = {"A": "int8", "B": "int8"}
    report = gs.explain("matmul_24", target=on_a_grid, dtypes=dtypes, specialize=sizes)
    assert ("dense blocks" in report.decisions[0].what) == (features == 4096)
