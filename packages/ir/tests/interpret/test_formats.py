"""The coordinate stage over many formats, against dense loops in NumPy."""

import numpy as np
import pytest

from gossamer_ir.errors import ArgumentError, UnsupportedError
from gossamer_ir.interpret import GuardFailed, InterpreterError, run
from gossamer_ir.script import parse_module

NAN, INF = np.nan, np.inf


def i32(*values):
    return np.array(values, np.int32)


def execute(script, sizes=(), **arrays):
    """Runs a script whose parameters are the arrays and sizes by name."""
    sizes = dict(sizes)
    params = [f"{name}: T.handle" for name in arrays] + [f"{name}: T.int64" for name in sizes]
    lines = ["@T.prim_func", f"def main({', '.join(params)}) -> None:"]
    lines.append('    T.func_attr({"sparse_tir_level": 2})')
    module = parse_module("\n".join(lines) + "\n" + script)
    assert module.stage == "coordinate"
    run(module, {**arrays, **sizes})


ELL = """
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_fixed(I, (n, w), indices)
    N = T.sp.dense_fixed(n)
    A = T.sp.match_buffer(a, (I, J), "float64")
    X = T.sp.match_buffer(x, (N,), "float64")
    Y = T.sp.match_buffer(y, (I,), "float64")
    with T.sp.iteration([I, J], "SR", "spmv") as [i, j]:
        with T.init():
            Y[i] = 0.0
        Y[i] = Y[i] + A[i, j] * X[j]
"""


def test_padding_of_ell_is_no_element():
    y = np.full(3, NAN)
    a = np.array([[2.0, 3.0], [5.0, NAN], [INF, NAN]])
    execute(
        ELL,
        {"m": 3, "n": 3, "w": 2},
        a=a,
        x=np.array([1.0, 10.0, 100.0]),
        y=y,
        indices=i32(0, 2, 1, 3, 3, 3),
    )
    np.testing.assert_array_equal(y, [302.0, 50.0, 0.0])


DCSR = """
    O = T.sp.dense_fixed(1)
    I = T.sp.compressed_varied(O, (m, nr), (indptr_i, indices_i))
    J = T.sp.compressed_varied(I, (n, nnz), (indptr_j, indices_j))
    M = T.sp.dense_fixed(m)
    N = T.sp.dense_fixed(n)
    A = T.sp.match_buffer(a, (O, I, J), "float64")
    X = T.sp.match_buffer(x, (N,), "float64")
    Y = T.sp.match_buffer(y, (M,), "float64")
    with T.sp.iteration([O, I, J], "SSR", "spmv") as [o, i, j]:
        with T.init():
            Y[i] = 0.0
        Y[i] = Y[i] + A[o, i, j] * X[j]
"""


def test_rows_absent_from_dcsr_keep_what_was_passed():
    y = np.array([-1.0, -2.0, -3.0, -4.0])
    execute(
        DCSR,
        {"m": 4, "n": 3, "nr": 2, "nnz": 3},
        a=np.array([1.0, 2.0, 3.0]),
        x=np.array([1.0, 10.0, 100.0]),
        y=y,
        indptr_i=i32(0, 2),
        indices_i=i32(1, 3),
        indptr_j=i32(0, 3, 3),
        indices_j=i32(0, 1, 2),
    )
    np.testing.assert_array_equal(y, [-1.0, 321.0, -3.0, 0.0])


BSR = """
    I = T.sp.dense_fixed(mb)
    J = T.sp.compressed_varied(I, (nb, nnzb), (indptr, indices))
    BI = T.sp.dense_fixed(bs)
    BJ = T.sp.dense_fixed(bs)
    N = T.sp.dense_fixed(nb * bs)
    M = T.sp.dense_fixed(mb * bs)
    A = T.sp.match_buffer(a, (I, J, BI, BJ), "float64")
    X = T.sp.match_buffer(x, (N,), "float64")
    Y = T.sp.match_buffer(y, (M,), "float64")
    with T.sp.iteration([I, BI, J, BJ], "SSRR", "spmv") as [i, bi, j, bj]:
        with T.init():
            Y[i * bs + bi] = 0.0
        Y[i * bs + bi] = Y[i * bs + bi] + A[i, j, bi, bj] * X[j * bs + bj]
"""


@pytest.mark.parametrize("is_shaped", [False, True])
def test_bsr(is_shaped):
    rng = np.random.default_rng(1)
    blocks = rng.integers(-4, 5, size=(3, 2, 2)).astype(np.float64)
    dense = np.zeros((6, 4))
    for block, (row, column) in zip(blocks, [(0, 0), (0, 1), (2, 1)], strict=True):
        dense[2 * row : 2 * row + 2, 2 * column : 2 * column + 2] = block
    x, y = rng.integers(-4, 5, size=4).astype(np.float64), np.full(6, NAN)
    a = blocks if is_shaped else blocks.reshape(-1)
    sizes = {"mb": 3, "nb": 2, "nnzb": 3, "bs": 2}
    execute(BSR, sizes, a=a.copy(), x=x, y=y, indptr=i32(0, 2, 2, 3), indices=i32(0, 1, 1))
    np.testing.assert_array_equal(y, dense @ x)


RAGGED = """
    I = T.sp.dense_fixed(m)
    J = T.sp.dense_varied(I, (longest, nnz), indptr)
    A = T.sp.match_buffer(a, (I, J), "float64")
    D = T.sp.dense_fixed(longest)
    Out = T.sp.match_buffer(out, (I, D), "float64")
    S = T.sp.match_buffer(s, (I,), "float64")
    with T.sp.iteration([I, D], "SS", "densify") as [i, d]:
        Out[i, d] = A[i, d]
    with T.sp.iteration([I, J], "SR", "sum") as [i, j]:
        with T.init():
            S[i] = 0.0
        S[i] = S[i] + A[i, j] * (j + 1)
"""


def test_a_position_beyond_a_ragged_fiber_reads_the_fill_value():
    out, s = np.full((3, 3), NAN), np.full(3, NAN)
    script = RAGGED.replace('(I, J), "float64")', '(I, J), "float64", default=-7.0)')
    script = script.replace("(j + 1)", "T.float64(j + 1)")
    sizes = {"m": 3, "longest": 3, "nnz": 4}
    execute(script, sizes, a=np.array([1.0, 2, 3, 4]), out=out, s=s, indptr=i32(0, 3, 3, 4))
    np.testing.assert_array_equal(out, [[1, 2, 3], [-7, -7, -7], [4, -7, -7]])
    np.testing.assert_array_equal(s, [14, 0, 4])


CSF = """
    H = T.sp.dense_fixed(2)
    R = T.sp.dense_fixed(nr)
    I = T.sp.compressed_varied(R, (m, ni), (indptr_i, indices_i))
    J = T.sp.compressed_varied(I, (n, nnz), (indptr_j, indices_j))
    A = T.sp.match_buffer(a, (H, R, I, J), "float64")
    RD = T.sp.dense_fixed(nr)
    ID = T.sp.dense_fixed(m)
    JD = T.sp.dense_fixed(n)
    Out = T.sp.match_buffer(out, (H, RD, ID, JD), "float64")
    Back = T.sp.match_buffer(back, (H, R, I, J), "float64")
    with T.sp.iteration([H, RD, ID, JD], "SSSS", "densify") as [h, r, i, j]:
        Out[h, r, i, j] = A[h, r, i, j]
    with T.sp.iteration([H, T.sp.fuse(R, I, J)], "SSSS", "compress") as [h1, r1, i1, j1]:
        Back[h1, r1, i1, j1] = Out[h1, r1, i1, j1]
"""


def test_values_of_csf_under_a_further_axis_go_there_and_back():
    a, back = np.arange(1.0, 11.0), np.full(10, NAN)
    out = np.full((2, 3, 2, 4), NAN)
    execute(
        CSF,
        {"nr": 3, "m": 2, "n": 4, "ni": 3, "nnz": 5},
        a=a,
        out=out,
        back=back,
        indptr_i=i32(0, 1, 1, 3),
        indices_i=i32(1, 0, 1),
        indptr_j=i32(0, 2, 2, 5),
        indices_j=i32(0, 3, 1, 2, 3),
    )
    expected = np.zeros((2, 3, 2, 4))
    for head, shift in ((0, 0), (1, 5)):
        for place, value in zip(
            [(0, 1, 0), (0, 1, 3), (2, 1, 1), (2, 1, 2), (2, 1, 3)], range(1, 6), strict=True
        ):
            expected[(head, *place)] = value + shift
    np.testing.assert_array_equal(out, expected)
    np.testing.assert_array_equal(back, a)


SIBLINGS = """
    B = T.sp.dense_fixed(nb)
    I = T.sp.dense_varied(B, (3, ni), indptr_i)
    J = T.sp.dense_varied(B, (3, nj), indptr_j)
    X = T.sp.match_buffer(x, (B, I, J), "float64", offsets=offsets)
    with T.sp.iteration([B, I, J], "SSS", "fill") as [b, i, j]:
        X[b, i, j] = T.float64(b * 100 + i * 10 + j)
"""


def test_two_varied_siblings_are_enumerated_as_products():
    x = np.full(2 * 3 + 1 * 2, NAN)
    sizes = {"nb": 3, "ni": 5, "nj": 5}
    indptr_i, indptr_j, offsets = i32(0, 2, 4, 5), i32(0, 3, 3, 5), i32(0, 6, 6, 8)
    execute(SIBLINGS, sizes, x=x, indptr_i=indptr_i, indptr_j=indptr_j, offsets=offsets)
    np.testing.assert_array_equal(x, [0, 1, 2, 10, 11, 12, 200, 201])


INTERLEAVED = """
    I = T.sp.dense_fixed(2)
    K = T.sp.dense_fixed(2)
    J = T.sp.compressed_varied(I, (5, nnz), (indptr, indices))
    P = T.sp.dense_fixed(2, parent=J)
    X = T.sp.match_buffer(x, (I, K, J, P), "float64")
    with T.sp.iteration([I, J, K, P], "SSSS", "fill") as [i, j, k, p]:
        X[i, k, j, p] = T.float64(i * 1000 + k * 100 + j * 10 + p)
"""


def test_storage_is_the_nested_enumeration_of_the_axes_in_order():
    x = np.full(12, NAN)
    execute(INTERLEAVED, {"nnz": 3}, x=x, indptr=i32(0, 2, 3), indices=i32(1, 4, 3))
    expected = [10, 11, 40, 41, 110, 111, 140, 141, 1030, 1031, 1130, 1131]
    np.testing.assert_array_equal(x, expected)


CSR = """
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (indptr, indices)FLAGS)
    N = T.sp.dense_fixed(n)
    A = T.sp.match_buffer(a, (I, J), "float64")
    X = T.sp.match_buffer(x, (N,), "float64")
    Y = T.sp.match_buffer(y, (I,), "float64")
"""


def csr(body, y, a=(1.0, 2.0, 4.0), indices=(0, 2, 1), flags=""):
    """Runs a body over a 3 x 3 matrix with rows of 2, 0 and 1 elements."""
    execute(
        CSR.replace("FLAGS", flags) + body,
        {"m": 3, "n": 3, "nnz": 3},
        a=np.array(a),
        x=np.array([1.0, 10.0, 100.0]),
        y=y,
        indptr=i32(0, 2, 2, 3),
        indices=i32(*indices),
    )
    return y


SPMV = """
    with T.sp.iteration(AXES, "KINDS", "spmv") as VARS:
        with T.init():
            Y[i] = 0.0
        Y[i] = Y[i] + A[i, j] * X[j]
"""


def spmv(axes="[I, J]", names="[i, j]", kinds="SR"):
    return SPMV.replace("AXES", axes).replace("VARS", names).replace("KINDS", kinds)


@pytest.mark.parametrize(
    "body",
    [spmv(), spmv("[T.sp.fuse(I, J)]"), spmv("[I, N]"), spmv("[N, I]", "[j, i]", "RS"),
     spmv("[N, I]", "[j, i]", "SS")],
    ids=["nested", "fused", "dense", "columns first", "marked spatial"],
)  # fmt: skip
def test_the_order_and_kind_of_work_do_not_change_the_result(body):
    np.testing.assert_array_equal(csr(body, np.full(3, NAN)), [201, 0, 40])


def test_duplicates_of_an_unsorted_axis_accumulate():
    flags = ", sorted=False, unique=False"
    y = csr(spmv(), np.full(3, NAN), indices=(2, 2, 1), flags=flags)
    np.testing.assert_array_equal(y, [300, 0, 40])


@pytest.mark.parametrize("flags", [", sorted=False", ", unique=False"])
def test_lookup_in_an_unsorted_axis_is_refused(flags):
    with pytest.raises(UnsupportedError, match="'J'") as caught:
        csr(spmv("[I, N]"), np.zeros(3), flags=flags)
    assert caught.value.code == "interpret.unsorted_lookup"


def test_a_reduction_without_init_accumulates_into_what_is_there():
    body = "\n".join(
        line for line in spmv().splitlines() if "init" not in line and "0.0" not in line
    )
    np.testing.assert_array_equal(csr(body, np.array([5.0, 6.0, 7.0])), [206, 6, 47])


TRANSPOSED = """
    with T.sp.iteration([I, J], "KINDS", "spmv") as [i, j]:
        with T.init():
            Y[j] = 0.0
        Y[j] = Y[j] + A[i, j]
"""


@pytest.mark.parametrize("kinds", ["RS", "SS"])
def test_spatial_points_that_meet_accumulate_after_one_init(kinds):
    body = TRANSPOSED.replace("KINDS", kinds)
    y = csr(body, np.array([-1.0, -2.0, -3.0]), indices=(0, 1, 1))
    np.testing.assert_array_equal(y, [1.0, 6.0, -3.0])


def test_a_store_to_an_absent_coordinate_fails_its_guard():
    body = """
    with T.sp.iteration([I, N], "SS", "fill") as [i, j]:
        A[i, j] = 1.0
"""
    with pytest.raises(GuardFailed, match="'A'") as caught:
        csr(body, np.zeros(3))
    assert caught.value.buffer == "A"


def test_a_coordinate_beyond_a_fixed_length_is_an_error():
    body = """
    with T.sp.iteration([I], "S", "shift") as [i]:
        Y[i] = X[i + 1]
"""
    with pytest.raises(InterpreterError, match=r"X\[3\] is out of bounds.*\(3,\)") as caught:
        csr(body, np.zeros(3))
    assert caught.value.buffer == "X"


def test_a_coordinate_beyond_a_compressed_length_is_absent():
    body = """
    with T.sp.iteration([I], "S", "shift") as [i]:
        Y[i] = A[i, i + 1]
"""
    np.testing.assert_array_equal(csr(body, np.full(3, NAN)), [0, 0, 0])


SOFTMAX = """
    Sum = T.sp.alloc_buffer((I,), "float64")
    Top = T.sp.alloc_buffer((I,), "float64")
    with T.sp.iteration([I], "S", "rows") as [i]:
        with T.sp.iteration([J], "R", "top") as [j]:
            with T.init():
                Top[i] = T.float64("-inf")
            Top[i] = T.max(Top[i], A[i, j])
        with T.sp.iteration([J], "R", "sum") as [j]:
            with T.init():
                Sum[i] = 0.0
            Sum[i] = Sum[i] + T.exp(A[i, j] - Top[i])
        with T.sp.iteration([J], "S", "divide") as [j]:
            A[i, j] = T.exp(A[i, j] - Top[i]) / Sum[i]
        Y[i] = Sum[i]
"""


def test_nested_iterations_take_the_fiber_of_the_outer_iterator():
    y = csr(SOFTMAX, np.full(3, NAN), a=(0.0, 0.0, 4.0))
    np.testing.assert_array_equal(y, [2.0, 0.0, 1.0])


def test_an_allocated_buffer_starts_as_garbage():
    body = """
    Z = T.sp.alloc_buffer((I, J), "float64")
    with T.sp.iteration([I, J], "SR", "copy") as [i, j]:
        Y[i] = Z[i, j]
"""
    np.testing.assert_array_equal(csr(body, np.zeros(3)), [NAN, 0.0, NAN])


ATTACHED = """
    J2 = T.sp.compressed_varied(I, (n, nnz), (indptr, indices))
    A2 = T.sp.match_buffer(a, (I, J2), "float64")
    with T.sp.iteration([I, J, T.sp.attach(J2, J)], "SRR", "two_hops") as [i, j, k]:
        with T.init():
            Y[i] = 0.0
        Y[i] = Y[i] + A[i, j] * A2[j, k] * X[k]
"""


def test_an_attached_axis_is_selected_by_the_coordinate():
    dense = np.array([[1.0, 0, 2.0], [0, 0, 0], [0, 4.0, 0]])
    expected = dense @ dense @ np.array([1.0, 10.0, 100.0])
    np.testing.assert_array_equal(csr(ATTACHED, np.full(3, NAN)), expected)


def test_a_varied_axis_needs_its_parent():
    body = """
    with T.sp.iteration([J], "R", "alone") as [j]:
        Y[j] = 1.0
"""
    with pytest.raises(UnsupportedError, match=r"'J'.*'I'") as caught:
        csr(body, np.zeros(3))
    assert caught.value.code == "interpret.missing_parent"


BODY = """
    with T.sp.iteration([I, J], "SR", "body") as [i, j]:
        with T.init():
            Y[i] = 0.0
        value = A[i, j] * 2.0
        if j > i:
            Y[i] = Y[i] + value
        else:
            Y[i] = Y[i] - T.if_then_else(j == 0, value, X[i] + value)
"""


def test_lets_conditions_and_unused_sides_in_a_body():
    np.testing.assert_array_equal(csr(BODY, np.full(3, NAN)), [2.0, 0.0, -108.0])


SHIFTED = """
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (indptr, indices))
    E = T.sp.dense_fixed(size)
    A = T.sp.match_buffer(a, (I, J), "float64")
    Y = T.sp.match_buffer(y, (I,), "float64")
    Moved = T.sp.match_buffer(moved, (E,), "int32")
    with T.sp.iteration([I], "S", "before") as [i]:
        Y[i] = A[i, 1]
    with T.sp.iteration([E], "S", "move") as [e]:
        Moved[e] = Moved[e] + 1
    with T.sp.iteration([I], "S", "after") as [i]:
        Y[i] = A[i, 1]
"""


def shift(**replaced):
    arrays = {"a": np.array([1.0, 2.0, 3.0]), "y": np.zeros(2)}
    arrays |= {"indptr": i32(0, 2, 3), "indices": i32(0, 1, 1), "moved": i32(0, 0, 0)} | replaced
    sizes = {"m": 2, "n": 4, "nnz": 3, "size": arrays["moved"].size}
    execute(SHIFTED, sizes, **arrays)
    return arrays


@pytest.mark.parametrize("name", ["indptr", "indices"])
def test_a_store_to_the_memory_of_an_index_array_is_refused(name):
    arrays = {"indptr": i32(0, 2, 3), "indices": i32(0, 1, 1)}
    with pytest.raises(
        ArgumentError, match=f"'moved', which shares memory with '{name}'"
    ) as caught:
        shift(**arrays, moved=arrays[name])
    assert caught.value.code == "interpret.overlap"
    np.testing.assert_array_equal(arrays["indices"], [0, 1, 1])


def test_a_store_beside_an_index_array_is_not_refused():
    memory = i32(0, 1, 1, 7, 7, 7)
    arrays = shift(indices=memory[:3], moved=memory[3:])
    np.testing.assert_array_equal(arrays["y"], [2, 3])
    np.testing.assert_array_equal(memory, [0, 1, 1, 8, 8, 8])
