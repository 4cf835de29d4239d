"""Programs over bitmasks at every stage and natively, against dense NumPy in float64: the coordinates of a
fiber are the bits of a word.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest
from masks import KINDS, data, nothing, offsets
from scipy import sparse
from script_runs import assert_everywhere, stages

import gossamer as gs
from gossamer.compilation.pipeline import report_for_target
from gossamer.targets.parse_target import DEFAULT_TARGET
from gossamer.targets.resolve_target import resolve_elsewhere
from gossamer_formats import convert, from_arrays, from_scipy
from gossamer_formats.descriptions.bitmask import bitmask
from gossamer_ir.errors import GossamerError
from gossamer_ir.interpret import run
from gossamer_ir.nodes import Call, Load
from gossamer_ir.script import parse_format, parse_module
from gossamer_ir.traversal.walk import walk

HEAD = """
@T.prim_func
def program(
    a: T.handle, indptr: T.handle, words: T.handle, x: T.handle, y: T.handle,
    m: T.int64, n: T.int64, nnz: T.int64, feat: T.int64,
) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(m)
    W = T.sp.dense_fixed((n + BITS - 1) // BITS, parent=I)
    J = T.sp.bitmask_varied(W, (BITS, nnz), (indptr, words), "INDEX", words_dtype="uintBITS")
    N = T.sp.dense_fixed(n)
    K = T.sp.dense_fixed(feat)
    A = T.sp.match_buffer(a, (I, W, J), "DTYPE")
"""
SPMV = """
    X = T.sp.match_buffer(x, (N,), "DTYPE")
    Y = T.sp.match_buffer(y, (I,), "DTYPE")
    with T.sp.iteration([I, W, J], "SRR", "spmv") as [i, w, j]:
        with T.init():
            Y[i] = 0.0
        if w * BITS + j < n:
            Y[i] = Y[i] + A[i, w, j] * X[w * BITS + j]
"""
SPMM = """
    X = T.sp.match_buffer(x, (N, K), "DTYPE")
    Y = T.sp.match_buffer(y, (I, K), "DTYPE")
    with T.sp.iteration([I, W, J, K], "SRRS", "spmm") as [i, w, j, k]:
        with T.init():
            Y[i, k] = 0.0
        if w * BITS + j < n:
            Y[i, k] = Y[i, k] + A[i, w, j] * X[w * BITS + j, k]
"""
LOOKUP = """
    X = T.sp.match_buffer(x, (N,), "DTYPE")
    Y = T.sp.match_buffer(y, (I, N), "DTYPE")
    with T.sp.iteration([I, N], "SS", "lookup") as [i, c]:
        Y[i, c] = A[i, c // BITS, c % BITS] * X[c]
"""
FUSED = """
    X = T.sp.match_buffer(x, (N,), "DTYPE")
    Y = T.sp.match_buffer(y, (I, W, J), "DTYPE")
    with T.sp.iteration([T.sp.fuse(I, W, J)], "SSS", "values") as [i, w, j]:
        if w * BITS + j < n:
            Y[i, w, j] = A[i, w, j] * X[w * BITS + j]
"""
PATTERNS = ["nothing", "all", "some", "one row", "one column", "no rows", "no columns"]


@lru_cache(maxsize=8)
def program(body, bits, dtype, index):
    text = HEAD + body
    for word, value in {"DTYPE": dtype, "INDEX": index, "BITS": str(bits)}.items():
        text = text.replace(word, value)
    return parse_module(text)


def pattern(name, bits):
    rng = np.random.default_rng(7)
    shape = {"no rows": (0, 5), "no columns": (4, 0)}.get(name, (5, 2 * bits - 3))
    mask = np.zeros(shape, bool)
    if name == "all":
        mask[...] = True
    elif name == "some":
        mask = rng.random(shape) < 0.4
        mask[[0, -1]] = False
    elif name == "one row":
        mask[2] = True
    elif name == "one column":
        mask[:, bits - 1] = True
    return mask


def arguments_of(mask, bits, dtype, index):
    """The arrays of a mask: words of bits, made one bit at a time."""
    m, n = mask.shape
    count = -(-n // bits)
    words = [
        sum(1 << at for at in range(bits) if w * bits + at < n and mask[i, w * bits + at])
        for i in range(m)
        for w in range(count)
    ]
    lengths = [word.bit_count() for word in words]
    values = data(int(mask.sum()), dtype)
    return {
        "a": values, "indptr": offsets(lengths, index), "words": np.array(words, f"uint{bits}"),
        "m": m, "n": n, "nnz": len(values), "feat": 3,
    }  # fmt: skip


@pytest.mark.parametrize("bits", [8, 64])
@pytest.mark.parametrize("name", PATTERNS)
@pytest.mark.parametrize(("dtype", "index"), KINDS)
def test_products_lookups_and_values(name, bits, dtype, index):
    mask = pattern(name, bits)
    arguments = arguments_of(mask, bits, dtype, index)
    dense = np.zeros(mask.shape)
    dense[mask] = arguments["a"]
    n = mask.shape[1]
    x, wide = data(n, dtype, 3), data((n, 3), dtype, 3)
    runs = {
        SPMV: (x, dense @ x.astype(np.float64)),
        SPMM: (wide, dense @ wide.astype(np.float64)),
        LOOKUP: (x, dense * x),
        FUSED: (x, (dense * x)[mask]),
    }
    for body, (operand, expected) in runs.items():
        kernel_arguments = arguments | {"x": operand, "y": nothing(expected.shape, dtype)}
        assert_everywhere(program(body, bits, dtype, index), kernel_arguments, y=expected)


@pytest.mark.parametrize("body", [SPMV, SPMM])
def test_a_kernel_reads_no_index_array_and_scans_the_bits(body):
    """A loop over the slots of a word clears one bit after the other."""
    flat = stages(program(body, 64, "float32", "int32"))[-1]
    calls = {node.function for node in walk(flat) if isinstance(node, Call)}
    assert calls == {"ctz"}
    read = {node.buffer for node in walk(flat) if isinstance(node, Load)}
    assert {"J_words", "J_indptr", "A_data", "X_data"} <= read
    assert not [name for name in read if name.endswith("indices")]


MASKED_BLOCKS = """
@T.format
def masked_blocks(
    data: T.handle, offsets: T.handle, columns: T.handle, indptr: T.handle, words: T.handle,
    m: T.int64, n: T.int64, blocks: T.int64, nnz: T.int64,
) -> None:
    IO = T.sp.dense_fixed((m + 7) // 8)
    JO = T.sp.compressed_varied(IO, ((n + 7) // 8, blocks), (offsets, columns), "int32")
    II = T.sp.dense_fixed(8, parent=JO)
    J = T.sp.bitmask_varied(II, (8, nnz), (indptr, words), "int32", words_dtype="uint8")
    A = T.sp.match_buffer(data, (IO, JO, II, J), "float32")
    T.sp.map(lambda io, jo, ii, j: (io * 8 + ii, jo * 8 + j), shape=(m, n))
"""


def test_a_format_of_a_user_has_bitmasks_in_blocks():
    rng = np.random.default_rng(1)
    dense = np.where(rng.random((30, 41)) < 0.1, rng.integers(1, 9, (30, 41)), 0)
    dense = dense.astype(np.float32)
    tensor = from_arrays(
        "coo",
        dense.shape,
        data=dense[dense.nonzero()],
        **{f"indices_{number}": coordinates for number, coordinates in enumerate(dense.nonzero())},
    )
    masked = convert(tensor, parse_format(MASKED_BLOCKS)).tensor
    assert masked.arrays["words"].dtype == np.uint8
    np.testing.assert_array_equal(masked.toarray(), dense)
    np.testing.assert_array_equal(masked.asformat("bitmask").toarray(), dense)
    x = rng.integers(-3, 4, (41, 5)).astype(np.float32)
    np.testing.assert_array_equal(gs.spmm(masked, x), dense @ x)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_operators_take_a_tensor_in_bitmask(dtype):
    rng = np.random.default_rng(2)
    dense = np.where(rng.random((50, 130)) < 0.3, rng.integers(1, 9, (50, 130)), 0).astype(dtype)
    tensor = from_scipy(sparse.csr_array(dense)).asformat("bitmask")
    assert tensor.description.name == bitmask().name
    x = rng.integers(-3, 4, (130, 7)).astype(dtype)
    np.testing.assert_array_equal(gs.spmm(tensor, x), dense @ x)
    np.testing.assert_array_equal(gs.spmv(tensor, x[:, 0].copy()), dense @ x[:, 0])


@pytest.mark.parametrize(("body", "rule"), [(SPMV, "row_spmv"), (SPMM, "row_spmm")])
def test_the_rules_for_rows_schedule_products(body, rule):
    _, target = resolve_elsewhere(DEFAULT_TARGET)
    assert report_for_target(program(body, 64, "float32", "int32"), target, None).rule == rule


def test_words_that_do_not_fit_the_offsets_are_refused():
    mask = pattern("some", 8)
    arguments = arguments_of(mask, 8, "float32", "int32")
    arguments |= {"x": data(mask.shape[1], "float32", 3), "y": nothing(5, "float32")}
    module = program(SPMV, 8, "float32", "int32")
    kernel = gs.compile(module)
    names = [*kernel.signature.order]
    words = arguments["words"].copy()
    words[3] ^= 1
    with pytest.raises(GossamerError, match="Element 3 of 'words'") as caught:
        kernel(**{name: (arguments | {"words": words})[name] for name in names})
    assert caught.value.code == "kernel.bits"
    with pytest.raises(GossamerError, match=r"bits? set"):
        run(module, arguments | {"words": words})
