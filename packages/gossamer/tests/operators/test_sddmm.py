"""SDDMM through the public API, against NumPy in float64."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from csr_matrices import DTYPES, NAMES, integers, matrices, untouched
from scipy import sparse

import gossamer as gs
from gossamer.operators.sddmm import SCRIPT
from gossamer_formats import from_arrays, from_scipy
from gossamer_ir.errors import ArgumentError, UserError
from gossamer_ir.interchange.records import Stats
from gossamer_ir.script import parse_module
from gossamer_ir.transform.specialize import specialize
from gossamer_machine import Machine
from gossamer_schedule.rules import default_schedule
from gossamer_testkit import sddmm, sddmm_magnitude

FEATURES = (0, 1, 7, 16, 33, 128)


def operands(shape, features, *, dtype, seed=6):
    """X and Y of small integers."""
    return tuple(integers((length, features), seed=seed, dtype=dtype) for length in shape)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("features", FEATURES)
@pytest.mark.parametrize("name", NAMES)
def test_sddmm_of_integers_is_exact(name, features, dtype):
    matrix = matrices(dtype)[name]
    x, y = operands(matrix.shape, features, dtype=dtype)
    expected = sddmm(matrix, x, y)
    for operand in (matrix, from_scipy(matrix)):
        result = gs.sddmm(operand, x, y)
        assert (result.dtype, result.shape) == (dtype, (matrix.nnz,))
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("indptr_dtype", [np.int32, np.int64])
@pytest.mark.parametrize("indices_dtype", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_storage_of_indices(dtype, indptr_dtype, indices_dtype):
    matrix = matrices(dtype)["unsorted and duplicate columns"]
    tensor = from_arrays(
        "csr",
        matrix.shape,
        indptr=matrix.indptr.astype(indptr_dtype),
        indices=matrix.indices.astype(indices_dtype),
        data=matrix.data,
    )
    for features in (5, 40):
        x, y = operands(matrix.shape, features, dtype=dtype)
        np.testing.assert_array_equal(gs.sddmm(tensor, x, y), sddmm(matrix, x, y))


@pytest.mark.parametrize("kind", ["coo", "csc", "bsr", "dia", "dok", "lil"])
def test_other_kinds_of_scipy_matrices_are_sampled_in_the_order_of_csr(kind):
    matrix = matrices("float64")["usual"]
    x, y = operands(matrix.shape, 9, dtype="float64")
    other = matrix.asformat(kind)
    np.testing.assert_array_equal(gs.sddmm(other, x, y), sddmm(other.tocsr(), x, y))


@pytest.mark.parametrize("matrix_dtype", DTYPES)
@pytest.mark.parametrize("operand_dtype", DTYPES)
def test_the_values_of_the_matrix_and_their_dtype_do_not_matter(matrix_dtype, operand_dtype):
    matrix = matrices(matrix_dtype)["explicit zeros"]
    matrix.data[::2] = np.nan
    x, y = operands(matrix.shape, 7, dtype=operand_dtype)
    for operand in (matrix, from_scipy(matrix)):
        result = gs.sddmm(operand, x, y)
        assert result.dtype == operand_dtype
        np.testing.assert_array_equal(result, sddmm(matrix, x, y))


def test_a_tensor_may_be_called_with_either_dtype_in_turn():
    matrix = matrices("float32")["usual"]
    tensor = from_scipy(matrix)
    for dtype in (*DTYPES, *DTYPES):
        x, y = operands(matrix.shape, 7, dtype=dtype)
        out = np.empty(matrix.nnz, dtype=dtype)
        assert gs.sddmm(tensor, x, y, out=out) is out
        np.testing.assert_array_equal(out, sddmm(matrix, x, y))


def layouts(dense):
    """The same values in other memory layouts."""
    rows, columns = dense.shape
    wide = np.zeros((rows, 2 * columns), dtype=dense.dtype)
    wide[:, ::2] = dense
    frozen = dense.copy()
    frozen.setflags(write=False)
    raw = np.zeros(dense.nbytes + 1, dtype=np.uint8)
    raw[1:] = dense.reshape(-1).view(np.uint8)
    return {
        "fortran": np.asfortranarray(dense),
        "strided": wide[:, ::2],
        "reversed": np.ascontiguousarray(dense[::-1])[::-1],
        "read-only": frozen,
        "unaligned": raw[1:].view(dense.dtype).reshape(rows, columns),
        "foreign byte order": dense.astype(dense.dtype.newbyteorder(">")),
        "a subclass": dense.view(np.matrix),
    }


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", list(layouts(np.ones((1, 1)))))
def test_dense_operands_may_have_any_layout(layout, dtype):
    matrix = matrices(dtype)["usual"]
    tensor = from_scipy(matrix)
    x, y = operands(matrix.shape, 6, dtype=dtype)
    expected = sddmm(matrix, x, y)
    gs.sddmm(tensor, x, y)  # leaves what later calls take first
    for left, right in ((layouts(x)[layout], y), (x, layouts(y)[layout])):
        for operand in (matrix, tensor):
            out = np.full(matrix.nnz, np.nan, dtype=dtype)
            result = gs.sddmm(operand, left, right)
            assert type(result) is np.ndarray
            np.testing.assert_array_equal(result, expected)
            np.testing.assert_array_equal(gs.sddmm(operand, left, right, out=out), expected)


def test_both_operands_may_be_one_array():
    matrix = sparse.csr_array(np.triu(np.ones((20, 20), dtype="float32")))
    x = integers((20, 33), seed=1, dtype="float32")
    np.testing.assert_array_equal(gs.sddmm(matrix, x, x), sddmm(matrix, x, x))


@pytest.mark.parametrize("features", [3, 40])
@pytest.mark.parametrize("dtype", DTYPES)
def test_nan_and_infinity_stay_where_they_belong(dtype, features):
    matrix = matrices(dtype)["usual"]
    x, y = (array + 10 for array in operands(matrix.shape, features, dtype=dtype))
    x[3, -1], x[5, 0], y[7, 1] = np.nan, np.inf, -np.inf
    rows = np.repeat(np.arange(37), np.diff(matrix.indptr))
    expected = sddmm(matrix, np.nan_to_num(x, posinf=0), np.nan_to_num(y, neginf=0))
    expected[rows == 5] = np.inf
    expected[matrix.indices == 7] = -np.inf
    expected[(rows == 5) & (matrix.indices == 7)] = np.nan
    expected[rows == 3] = np.nan
    np.testing.assert_array_equal(gs.sddmm(matrix, x, y), expected)


def lying(array, *, elements):
    """A copy that starts some elements after the beginning of a cache line, surrounded by NaNs."""
    size = array.dtype.itemsize
    memory = np.full(array.size + 192 // size, np.nan, array.dtype)
    first = (-memory.ctypes.data % 64) // size + elements
    view = memory[first : first + array.size].reshape(array.shape)
    view[:] = array
    return view


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("features", [16, 32, 48, 128])
def test_operands_may_begin_anywhere(dtype, features):
    matrix = matrices(dtype)["usual"]
    x, y = operands(matrix.shape, features, dtype=dtype)
    y[matrix.indices[0]] = np.nan
    expected = sddmm(matrix, x, y)
    tensor = from_scipy(matrix)
    for elements in range(64 // x.itemsize):
        result = gs.sddmm(tensor, lying(x, elements=3), lying(y, elements=elements))
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("features", [1, 16, 33, 128, 1000])
def test_sums_are_off_by_rounding_only(features, dtype):
    random = np.random.default_rng(3)
    matrix = matrices(dtype)["one dense row"]
    x, y = (random.standard_normal((length, features)).astype(dtype) for length in matrix.shape)
    error = np.abs(gs.sddmm(matrix, x, y) - sddmm(matrix, x, y))
    bound = sddmm_magnitude(matrix, x, y)
    assert (error <= (features + 2) * np.finfo(dtype).eps * bound).all()


def test_out_is_filled_and_returned():
    matrix = matrices("float32")["empty rows at both ends"]
    x, y = operands(matrix.shape, 5, dtype="float32")
    tensor = from_scipy(matrix)
    for operand in (matrix, tensor, tensor):
        out = np.full(matrix.nnz, np.nan, dtype="float32")
        assert gs.sddmm(operand, x, y, out=out) is out
        np.testing.assert_array_equal(out, sddmm(matrix, x, y))


def test_out_is_zero_where_there_are_no_features():
    matrix = matrices("float32")["usual"]
    out = np.full(matrix.nnz, np.nan, dtype="float32")
    gs.sddmm(matrix, *operands(matrix.shape, 0, dtype="float32"), out=out)
    assert not out.any()


@pytest.mark.parametrize("dtype", DTYPES)
def test_results_do_not_depend_on_the_number_of_threads(dtype):
    rng = np.random.default_rng(1)
    matrix = sparse.random_array((20_000, 500), density=0.01, rng=rng, dtype=dtype, format="csr")
    x, y = (rng.standard_normal((length, 24)).astype(dtype) for length in matrix.shape)
    before = gs.get_num_threads()
    results = []
    for threads in (1, 2, 5):
        gs.set_num_threads(threads)
        results.append(gs.sddmm(matrix, x, y))
    gs.set_num_threads(before)
    for again in results[1:]:
        np.testing.assert_array_equal(again, results[0])


def test_threads_may_call_and_compile_at_once():
    matrix = matrices("float64")["usual"]
    tensor = from_scipy(matrix)

    def products(features):
        x, y = operands(matrix.shape, features, dtype="float64", seed=features)
        out = np.empty(matrix.nnz)
        return gs.sddmm(tensor, x, y), gs.sddmm(tensor, x, y, out=out), sddmm(matrix, x, y)

    widths = [*range(1, 25), *range(24, 0, -1)]
    with ThreadPoolExecutor(8) as pool:
        for fresh, written, expected in pool.map(products, widths):
            np.testing.assert_array_equal(fresh, expected)
            np.testing.assert_array_equal(written, expected)


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_offsets_beyond_two_to_the_31_are_exact(index):
    rows, features = 2**26 + 5, 33
    y = untouched(rows * features, "float32").reshape(rows, features)
    y[-3:] = integers((3, features), seed=3, dtype="float32")
    x = integers((3, features), seed=4, dtype="float32")
    tensor = from_arrays(
        "csr",
        (3, rows),
        indptr=np.array([0, 2, 2, 4], dtype=index),
        indices=np.array([rows - 1, 0, rows - 3, rows - 2], dtype=index),
        data=np.ones(4, dtype=np.float32),
    )
    expected = [x[0] @ y[-1], 0, x[2] @ y[-3], x[2] @ y[-2]]
    np.testing.assert_array_equal(gs.sddmm(tensor, x, y), expected)


@pytest.mark.parametrize("rows", [0, 1, 20])
@pytest.mark.parametrize("features", [0, 1, 5, 40])
def test_a_bound_call_reads_its_arrays_at_each_call(rows, features):
    rng = np.random.default_rng(3)
    matrix = sparse.random_array((rows, 30), density=0.2, rng=rng, format="csr")
    for operand in (matrix, from_scipy(matrix)):
        x, y = operands(matrix.shape, features, dtype="float32")
        out = np.full(matrix.nnz, np.nan, dtype="float32")
        bound = gs.sddmm.bind(operand, x, y, out=out)
        for factor in (1, 2):
            x *= factor
            y += 1
            bound()
            np.testing.assert_array_equal(out, sddmm(matrix, x, y))


A = sparse.csr_array(np.array([[1, 0, 2], [0, 3, 0]], dtype=np.float32))
X, Y = np.ones((2, 4), dtype=np.float32), np.ones((3, 4), dtype=np.float32)


def tampered(name, at, value):
    matrix = A.copy()
    getattr(matrix, name)[at] = value
    return matrix


BAD_OPERANDS = [
    ("operand.dtype", A, X.astype("float64"), Y, "'Y' has the dtype float32, 'X' float64"),
    ("operand.dtype", A, X, Y.astype("float64"), "'Y' has the dtype float64, 'X' float32"),
    ("operand.dtype", A, X, Y.astype("int32"), "'Y' has the dtype int32"),
    ("operand.dtype", A, X.astype("int32"), Y, "int32; expected float32, float64, float16 or int8"),
    ("operand.dtype", A, X.astype("complex64"), Y, "'X' has the dtype complex64"),
    ("operand.dtype", A, X.astype("float16"), Y, "'X' float16; expected one dtype"),
    ("operand.dtype", A, X.astype(object), Y, "'X' has the dtype object"),
    ("operand.shape", A, Y, Y, "'X' has the shape (3, 4); expected (2, any)"),
    ("operand.shape", A, X, X, "'Y' has the shape (2, 4); expected (3, 4)"),
    ("operand.shape", A, X[:, :3], Y, "'Y' has the shape (3, 4); expected (3, 3)"),
    ("operand.shape", A, X, Y.T.copy(), "'Y' has the shape (4, 3)"),
    ("operand.shape", A, X[0], Y, "'X' has the shape (4,)"),
    ("operand.shape", A, X, Y[0], "'Y' has the shape (4,)"),
    ("operand.shape", A, X[:, :, None], Y, "'X' has the shape (2, 4, 1)"),
    ("operand.kind", A, X.tolist(), Y, "'X' has the type 'list'; expected a NumPy array"),
    ("operand.kind", A, X, Y.tolist(), "'Y' has the type 'list'; expected a NumPy array"),
    ("operand.kind", A, None, Y, "'X' has the type 'NoneType'"),
    ("operand.kind", A, X, sparse.csr_array(Y), "'Y' has the type 'csr_array'"),
    ("operand.kind", A, np.ma.masked_array(X), Y, "'X' has the type 'MaskedArray'"),
    ("format.kind", X, X, Y, "The matrix has the type 'ndarray'"),
    ("format.dtype", A.astype(np.complex64), X, Y, "complex64"),
    ("format.value", tampered("indptr", 0, 1), X, Y, "Element 0 of 'indptr' is 1"),
    ("format.monotone", tampered("indptr", 1, 9), X, Y, "Element 2 of 'indptr' is 3"),
    ("format.range", tampered("indices", 2, 3), X, Y, "Element 2 of 'indices' is 3"),
    ("format.range", tampered("indices", 0, -1), X, Y, "Element 0 of 'indices' is -1"),
]


@pytest.mark.parametrize(("code", "matrix", "x", "y", "named"), BAD_OPERANDS)
def test_bad_operands(code, matrix, x, y, named):
    out = np.full(3, 7, dtype=np.float32)
    with pytest.raises(UserError) as caught:
        gs.sddmm(matrix, x, y, out=out)
    assert caught.value.code == code
    assert named in str(caught.value)
    assert "\n" not in str(caught.value)
    assert (out == 7).all()


@pytest.mark.parametrize(
    ("code", "x", "y", "named"),
    [(code, x, y, named) for code, matrix, x, y, named in BAD_OPERANDS if matrix is A],
)
def test_bad_operands_of_later_calls_of_a_tensor(code, x, y, named):
    tensor = from_scipy(A)
    out = np.full(3, 7, dtype=np.float32)
    gs.sddmm(tensor, X, Y, out=out)
    with pytest.raises(UserError) as caught:
        gs.sddmm(tensor, x, y, out=out)
    assert caught.value.code == code
    assert named in str(caught.value)
    assert (out == 4).all()


def read_only():
    out = np.zeros(3, dtype=np.float32)
    out.setflags(write=False)
    return out


BAD_OUT = [
    ("operand.kind", [0.0] * 3, "'out' has the type 'list'"),
    ("operand.dtype", np.zeros(3), "'out' has the dtype float64; expected float32"),
    ("operand.dtype", np.zeros(3, dtype=">f4"), "'out' has the dtype >f4"),
    ("operand.shape", np.zeros((2, 3), dtype=np.float32), "(2, 3); expected (3,)"),
    ("operand.shape", np.zeros(4, dtype=np.float32), "(4,); expected (3,)"),
    ("operand.contiguity", np.zeros(6, dtype=np.float32)[::2], "strides (8,)"),
    (
        "operand.alignment",
        np.frombuffer(bytearray(13), "uint8")[1:].view("float32"),
        "multiple of 4 bytes",
    ),
    ("operand.read_only", read_only(), "'out' is read-only"),
]


@pytest.mark.parametrize(("code", "out", "named"), BAD_OUT)
def test_bad_outputs(code, out, named):
    tensor = from_scipy(A)
    gs.sddmm(tensor, X, Y)
    for matrix in (A, tensor):
        with pytest.raises(UserError) as caught:
            gs.sddmm(matrix, X, Y, out=out)
        assert caught.value.code == code
        assert named in str(caught.value)


def test_an_output_over_an_input_is_refused():
    square = sparse.csr_array(np.eye(3, dtype=np.float32))
    tensor = from_scipy(square)
    memory = np.ones(15, dtype=np.float32)
    inner, other = memory[:12].reshape(3, 4), np.ones((3, 4), dtype=np.float32)
    gs.sddmm(tensor, inner, other)
    for matrix in (square, tensor):
        for left, right in ((inner, other), (other, inner)):
            for out in (memory[:3], memory[10:13]):
                with pytest.raises(UserError, match="'out' overlaps an input") as caught:
                    gs.sddmm(matrix, left, right, out=out)
                assert caught.value.code == "operand.overlap"
    with pytest.raises(UserError, match="'out' overlaps an input"):
        gs.sddmm(square, inner, other, out=square.data)
    np.testing.assert_array_equal(gs.sddmm(tensor, inner, other, out=memory[12:]), [4, 4, 4])


BAD_BINDINGS = [
    ("operator.operands", "spmm", (), "operands of spmm is 1; expected 2: A, B"),
    ("operator.operands", "spmv", (X, Y), "operands of spmv is 3; expected 2: A, x"),
    ("operator.operands", "sddmm", (X,), "operands of sddmm is 2; expected 3: A, X, Y"),
    ("operator.operands", "sddmm", (X, Y, Y), "is 4"),
    ("operator.operands", "attention", (X,), "is 2; expected 4 to 5: pattern, Q, K, V, scale"),
    ("operand.contiguity", "sddmm", (X, np.asfortranarray(Y)), "strides (4, 12)"),
    ("operand.contiguity", "sddmm", (np.ones((2, 8), "float32")[:, ::2], Y), "strides (32, 8)"),
    ("operand.kind", "sddmm", (X.tolist(), Y), "'X' has the type 'list'"),
]


@pytest.mark.parametrize(("code", "op", "dense", "named"), BAD_BINDINGS)
def test_bad_bindings(code, op, dense, named):
    with pytest.raises(ArgumentError) as caught:
        getattr(gs, op).bind(A, *dense, out=np.empty(3, dtype=np.float32))
    assert caught.value.code == code
    assert named in str(caught.value)


def test_a_list_beside_a_tensor_and_an_output_is_refused_by_every_operator():
    tensor, out = from_scipy(A), np.zeros((2, 4), dtype=np.float32)
    for op, dense in ((gs.spmm, (Y,)), (gs.spmv, (Y[:, 0],)), (gs.sddmm, (X, Y))):
        with pytest.raises(UserError) as caught:
            op(tensor, *(array.tolist() for array in dense), out=out)
        assert caught.value.code == "operand.kind"


SUM = "Out[i, j] + X[i, k] * Y[j, k]"
LIKE_IT = {
    "as it is": (),
    "its largest term": ((SUM, "T.max(Out[i, j], X[i, k] * Y[j, k])"), ("= 0.0", "= -99.0")),
    "features of X first": (("(I, K)", "(K, I)"), ("X[i, k]", "X[k, i]")),
    "features of Y first": (("(J_detach, K)", "(K, J_detach)"), ("Y[j, k]", "Y[k, j]")),
    "the sum outermost": (
        ('[I, J, K], "SSR", "sddmm") as [i, j, k]', '[K, I, J], "RSS", "sddmm") as [k, i, j]'),
    ),
    "a loop's name": (("nnz", "k_0"),),
    "a buffer's name": (("nnz", "Y_data"),),
}


@pytest.mark.parametrize("edits", LIKE_IT.values(), ids=LIKE_IT)
@pytest.mark.parametrize("stats", [None, Stats(37, 10**6, 111, 50, 0), Stats(37, 29, 1850, 50, 0)])
def test_programs_like_it_compile_with_what_the_rules_choose(edits, stats):
    script = SCRIPT
    for old, new in edits:
        assert old in script
        script = script.replace(old, new)
    matrix = matrices("float32")["unsorted and duplicate columns"]
    for features in (20, None):
        sizes = {} if features is None else {"feat_size": features}
        module = specialize(parse_module(script), sizes)
        kernel = gs.compile(module, schedule=default_schedule(module, Machine(), stats))
        x, y = operands(matrix.shape, features or 11, dtype="float32")
        terms = x[:, None] * y[None]
        rows = np.repeat(np.arange(37), np.diff(matrix.indptr))
        expected = (terms.max(2) if "T.max" in script else terms.sum(2))[rows, matrix.indices]
        out = np.full(matrix.nnz, np.nan, dtype="float32")
        left = x.T.copy() if "X[k, i]" in script else x
        right = y.T.copy() if "Y[k, j]" in script else y
        kernel(x=left, y=right, out=out, indptr=matrix.indptr, indices=matrix.indices)
        np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("features", [0, 1, 7, 32, 100])
def test_padding_is_no_element(features, dtype):
    """A padding slot keeps the passed value, and its operands have no effect."""
    random = np.random.default_rng(features)
    rows, columns = 50, 40
    lengths = random.integers(0, 9, rows)
    lengths[[0, -1]] = 0
    indptr = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    indices = random.integers(0, columns, indptr[-1]).astype(np.int32)
    is_padding = random.random(indices.size) < 0.3
    indices[is_padding] = columns
    x, y = (random.integers(-3, 4, (size, features)).astype(dtype) for size in (rows, columns))
    out = np.full(indices.size, 77, dtype)
    script = SCRIPT.replace("sorted=False, unique=False", "padded=True, sorted=False, unique=False")
    values = dict.fromkeys(("X", "Y", "Out"), dtype)
    kernel = gs.compile(script, specialize={"feat_size": features}, dtypes=values)
    kernel(x=x, y=y, out=out, indptr=indptr, indices=indices)
    exact = x.astype("float64") @ np.vstack([y, np.zeros((1, features))]).astype("float64").T
    expected = exact[np.repeat(np.arange(rows), lengths), indices]
    np.testing.assert_array_equal(out, np.where(is_padding, 77, expected))
