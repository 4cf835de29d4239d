"""The position stage: sparse buffers indexed by positions relative to fibers."""

import numpy as np
import pytest

from gossamer_ir.errors import ArgumentError, UnsupportedError
from gossamer_ir.interpret import InterpreterError, run
from gossamer_ir.script import parse_module

NAN = np.nan


def i32(*values):
    return np.array(values, np.int32)


def execute(script, arguments):
    """Runs a script whose parameters are the arguments by name."""
    kinds = {
        name: "T.handle" if isinstance(value, np.ndarray) else "T.int64"
        for name, value in arguments.items()
    }
    params = ", ".join(f"{name}: {kind}" for name, kind in kinds.items())
    head = f"@T.prim_func\ndef main({params}) -> None:\n"
    module = parse_module(head + '    T.func_attr({"sparse_tir_level": 1})\n' + script)
    assert module.stage == "position"
    run(module, arguments)


DCSR_BLOCKS = """
    O = T.sp.dense_fixed(1)
    I = T.sp.compressed_varied(O, (mb, nr), (indptr_i, indices_i))
    J = T.sp.compressed_varied(I, (nb, nnzb), (indptr_j, indices_j))
    BI = T.sp.dense_fixed(2)
    BJ = T.sp.dense_fixed(3)
    M = T.sp.dense_fixed(mb * 2)
    N = T.sp.dense_fixed(nb * 3)
    A = T.sp.match_buffer(a, (O, I, J, BI, BJ), "float64")
    X = T.sp.match_buffer(x, (N,), "float64")
    Y = T.sp.match_buffer(y, (M,), "float64")
    I_indptr = T.sp.match_buffer(indptr_i, (O,), "int32", extra_storage=1)
    I_indices = T.sp.match_buffer(indices_i, (O, I), "int32")
    J_indptr = T.sp.match_buffer(indptr_j, (O, I), "int32", extra_storage=1)
    J_indices = T.sp.match_buffer(indices_j, (O, I, J), "int32")
    for o in T.serial(1):
        for i in T.serial(T.int64(I_indptr[o + 1]) - T.int64(I_indptr[o])):
            for bi in T.serial(2):
                for j in T.serial(T.int64(J_indptr[o, i + 1]) - T.int64(J_indptr[o, i])):
                    for bj in T.serial(3):
                        with T.block("spmv"):
                            vo, vi, vbi, vj, vbj = T.axis.remap("SSSRR", [o, i, bi, j, bj])
                            with T.init():
                                Y[T.int64(I_indices[vo, vi]) * 2 + vbi] = 0.0
                            Y[T.int64(I_indices[vo, vi]) * 2 + vbi] = (
                                Y[T.int64(I_indices[vo, vi]) * 2 + vbi]
                                + A[vo, vi, vj, vbi, vbj] * X[T.int64(J_indices[vo, vi, vj]) * 3 + vbj]
                            )
"""


def test_blocks_under_two_compressed_levels():
    rng = np.random.default_rng(5)
    blocks = rng.integers(-4, 5, size=(3, 2, 3)).astype(np.float64)
    dense = np.zeros((8, 6))
    for block, (row, column) in zip(blocks, [(1, 0), (1, 1), (3, 1)], strict=True):
        dense[2 * row : 2 * row + 2, 3 * column : 3 * column + 3] = block
    x, y = rng.integers(-4, 5, size=6).astype(np.float64), np.full(8, NAN)
    execute(
        DCSR_BLOCKS,
        {
            "a": blocks.reshape(-1), "x": x, "y": y, "indptr_i": i32(0, 3),
            "indices_i": i32(1, 2, 3), "indptr_j": i32(0, 2, 2, 3), "indices_j": i32(0, 1, 1),
            "mb": 4, "nb": 2, "nr": 3, "nnzb": 3,
        },
    )  # fmt: skip
    expected = dense @ x
    expected[:2] = NAN
    np.testing.assert_array_equal(y, expected)


CSR = """
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (indptr, indices))
    N = T.sp.dense_fixed(n)
    Y = T.sp.match_buffer(y, (I, N), "int64")
    J_indptr = T.sp.match_buffer(indptr, (I,), "int32", extra_storage=1)
    J_indices = T.sp.match_buffer(indices, (I, J), "int32")
"""

SEARCH = """
    for i, c in T.grid(m, n):
        with T.block("search"):
            vi, vc = T.axis.remap("SS", [i, c])
            Y[vi, vc] = T.search(
                "KIND", J_indices, vi, begin=0,
                end=T.int64(J_indptr[vi + 1]) - T.int64(J_indptr[vi]), value=vc
            )
"""


def csr(body, **changed):
    """Runs a body over the pattern [[0, 2, 3], [], [1]] of four columns; returns Y."""
    y = np.full((3, 4), -9)
    arguments = {
        "y": y, "indptr": i32(0, 3, 3, 4), "indices": i32(0, 2, 3, 1), "m": 3, "n": 4, "nnz": 4,
    }  # fmt: skip
    execute(CSR + body, {**arguments, **changed})
    return y


SEARCHES = {
    "exact": [[0, -1, 1, 2], [-1, -1, -1, -1], [-1, 0, -1, -1]],
    "lower": [[0, 1, 1, 2], [0, 0, 0, 0], [0, 0, 1, 1]],
    "upper": [[1, 1, 2, 3], [0, 0, 0, 0], [0, 1, 1, 1]],
}


@pytest.mark.parametrize(("kind", "expected"), SEARCHES.items())
def test_searches_give_positions_in_a_fiber(kind, expected):
    np.testing.assert_array_equal(csr(SEARCH.replace("KIND", kind)), expected)


ROWS = """
    for p in T.serial(nnz):
        with T.block("decompress"):
            vp = T.axis.spatial(nnz, p)
            Y[0, vp] = T.search("upper", J_indptr, begin=0, end=m + 1, value=vp) - 1
"""


def test_an_upper_search_in_indptr_gives_the_row_of_a_slot():
    np.testing.assert_array_equal(csr(ROWS)[0], [0, 0, 0, 2])


READ = """
    for i in T.serial(1):
        with T.block("read"):
            vi = T.axis.spatial(m, i)
            Y[vi, 0] = T.int64({})
"""


@pytest.mark.parametrize("load", ["J_indices[vi, 3]", "J_indices[vi, 0 - 1]"])
def test_a_position_outside_its_fiber_is_a_miss(load):
    assert csr(READ.format(load))[0, 0] == 0


def test_a_position_beyond_a_fixed_axis_is_an_error():
    with pytest.raises(InterpreterError, match=r"J_indptr\[4\].*\(4,\)"):
        csr(READ.format("J_indptr[vi + 4]"))


BAD_ARRAYS = [
    ({"indptr": i32(0, 3, 2, 4)}, "'indptr' does not start at 0, or decreases"),
    ({"indptr": i32(1, 3, 3, 4)}, "'indptr' does not start at 0, or decreases"),
    ({"indptr": i32(0, 3, 4)}, r"'indptr' .* shape \(3,\); expected int32 of shape \(4,\)"),
    ({"indptr": np.array([0, 3, 3, 4])}, "'indptr' is an array of int64 .* expected int32"),
    ({"indptr": i32(0, 3, 3, 3)}, "'indptr' ends with 3, but axis 'J' has 4 elements"),
    ({"indices": i32(0, 2, 3)}, "'indices' has 3 elements"),
    ({"m": -3}, "A size is -3, which is negative"),
]


@pytest.mark.parametrize(("changed", "message"), BAD_ARRAYS)
def test_index_arrays_that_make_no_axis_are_refused(changed, message):
    with pytest.raises(ArgumentError, match=message):
        csr("    for i in T.serial(1):\n        Y[i, 0] = 1\n", **changed)


MASKED = """
    I = T.sp.dense_fixed(m)
    J = T.sp.bitmask_varied(I, (8, nnz), (indptr, words), words_dtype="uint8")
    A = T.sp.match_buffer(a, (I, J), "int64")
    Y = T.sp.match_buffer(y, (I,), "int64")
    J_indptr = T.sp.match_buffer(indptr, (I,), "int32", extra_storage=1)
    J_words = T.sp.match_buffer(words, (I,), "uint8")
    for i in T.serial(m):
        for j in T.serial(T.int64(J_indptr[i + 1]) - T.int64(J_indptr[i])):
            with T.block("sums"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    Y[vi] = 0
                Y[vi] = Y[vi] + A[vi, vj] * T.find_nth_bit(T.int64(J_words[vi]), vj)
"""


def masked(*words):
    arrays = {"a": np.arange(1, 5), "y": np.zeros(3, np.int64), "indptr": i32(0, 3, 3, 4)}
    execute(MASKED, arrays | {"words": np.array(words, np.uint8), "m": 3, "nnz": 4})
    return arrays["y"].tolist()


def test_the_coordinates_of_a_bitmask_are_the_bits_of_its_words():
    assert masked(0b10000101, 0, 0b1000) == [0 + 2 * 2 + 3 * 7, 0, 4 * 3]


def test_a_word_has_as_many_bits_as_its_fiber_has_slots():
    message = "Element 1 of 'words' has 1 bit set; expected 0"
    with pytest.raises(ArgumentError, match=message) as caught:
        masked(0b111, 1, 1)
    assert caught.value.code == "interpret.words"


def test_vectors_do_not_index_sparse_buffers():
    body = """
    for i in T.serial(1):
        Y[i, T.ramp(0, 1, 4)] = T.broadcast(T.int64(1), 4)
"""
    with pytest.raises(UnsupportedError) as caught:
        csr(body)
    assert caught.value.code == "interpret.vector_index"
