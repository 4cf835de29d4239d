"""Products of programs that are decomposed by published rules, compared with SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import gossamer as gs
from gossamer.operators.spmm import SCRIPT
from gossamer_formats import convert, from_scipy
from gossamer_ir.script import parse_module
from gossamer_schedule import FormatRewriteRule, format_decompose
from gossamer_testkit.matrices.oracles import spmm, tolerance

BSR = """
@T.prim_func
def bsr(
    a: T.handle, indptr: T.handle, indices: T.handle,
    mb: T.int32, nb: T.int32, nnzb: T.int32, block_size: T.int32,
) -> None:
    IO = T.dense_fixed(mb)
    JO = T.sparse_variable(IO, (nb, nnzb), (indptr, indices), "int32")
    II = T.dense_fixed(block_size)
    JI = T.dense_fixed(block_size)
    A = T.match_sparse_buffer(a, (IO, JO, II, JI), "float32")
    T.evaluate(0)
"""
ELL = """
@T.prim_func
def ell(
    a: T.handle, indptr: T.handle, rows: T.handle, indices: T.handle,
    m: T.int32, n: T.int32, stored: T.int32, width: T.int32,
) -> None:
    O = T.dense_fixed(1)
    I = T.sparse_variable(O, (m, stored), (indptr, rows), "int32")
    J = T.sparse_fixed(I, (n, width), indices, "int32")
    A = T.match_sparse_buffer(a, (O, I, J), "float32")
    T.evaluate(0)
"""
SHAPES = {"blocks": (12, 8), "rest": (13, 10), "one row": (1, 9), "no rows": (0, 5)}


def matrix(shape):
    rng = np.random.default_rng(0)
    random = sparse.random_array(shape, density=0.4, format="lil", rng=rng, dtype=np.float32)
    random[4:6] = 0
    return random.tocsr()


def blocks(side=None):
    """The rule of BSR, with a size that is a constant, or symbolic."""
    if side is None:
        maps = (
            lambda i, j, block_size: (
                i // block_size,
                j // block_size,
                i % block_size,
                j % block_size,
            ),
            lambda io, jo, ii, ji, block_size: (io * block_size + ii, jo * block_size + ji),
        )
    else:
        maps = (
            lambda i, j: (i // side, j // side, i % side, j % side),
            lambda io, jo, ii, ji: (io * side + ii, jo * side + ji),
        )
    return FormatRewriteRule("b", BSR, ["A"], {"I": ["IO", "II"], "J": ["JO", "JI"]}, *maps)


def bucket(name):
    return FormatRewriteRule(
        name, ELL, ["A"], ["I", "J"], ["O", "I", "J"], {"I": ["O", "I"], "J": ["J"]},
        lambda i, j: (0, i, j), lambda o, i, j: (i, j),
    )  # fmt: skip


def product(rules, values, stored, *, converts=False):
    """Return the product of a decomposed program, whose output was not initialized."""
    dense = np.random.default_rng(1).random((stored.shape[1], 6), dtype=np.float32)
    output = np.full((stored.shape[0], 6), np.nan, np.float32)
    # Elements are looked up by a conversion only, which needs columns in order.
    script = SCRIPT.replace(", sorted=False, unique=False", "") if converts else SCRIPT
    module = format_decompose(
        parse_module(script), rules, include_format_rewrite_blks=converts
    ).module
    gs.compile(module)(b=dense, c=output, **values)
    rounding = tolerance(stored.shape[1], "float32")
    np.testing.assert_allclose(output, spmm(stored, dense), rtol=rounding)


def bsr_arguments(stored, side):
    blocks = convert(from_scipy(stored), "bsr", block_rows=side, block_columns=side).tensor
    arrays = blocks.arrays
    return {
        "a_b": arrays["data"], "indptr_b": arrays["indptr"], "indices_b": arrays["indices"],
        "block_size_b": side, "mb_b": -(-stored.shape[0] // side), "nb_b": -(-stored.shape[1] // side),
    }  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("is_symbolic", [True, False])
def test_blocks_of_a_symbolic_size(shape, is_symbolic):
    stored = matrix(shape)
    arguments = bsr_arguments(stored, 4)
    product([blocks(None if is_symbolic else 4)], arguments, stored)


def test_the_program_can_convert_the_values():
    stored = matrix((13, 10))
    arguments = bsr_arguments(stored, 3)
    # Blocks at the borders have slots beyond the matrix, which are neither written nor read.
    arguments["a_b"] = np.full_like(arguments["a_b"], np.nan)
    tensor = from_scipy(stored)
    original = {"a": tensor.arrays["data"], "indptr": tensor.arrays["indptr"]}
    original["indices"] = tensor.arrays["indices"]
    product([blocks()], arguments | original, stored, converts=True)


def test_buckets_of_rows():
    stored = matrix((30, 20))
    lengths = np.diff(stored.indptr)
    arguments = {}
    for name, low, width in (("short", 0, 8), ("long", 8, 16)):
        rows = np.flatnonzero((lengths > low) & (lengths <= width)).astype(np.int32)
        assert rows.size
        columns, values = np.full((rows.size, width), 20, np.int32), np.zeros((rows.size, width))
        for number, row in enumerate(rows):
            row_slots = slice(stored.indptr[row], stored.indptr[row + 1])
            columns[number, : lengths[row]] = stored.indices[row_slots]
            values[number, : lengths[row]] = stored.data[row_slots]
        arguments |= {
            f"a_{name}": values.astype(np.float32), f"rows_{name}": rows, f"indices_{name}": columns,
            f"indptr_{name}": np.array([0, rows.size], np.int32), f"width_{name}": width,
        }  # fmt: skip
    product([bucket("short"), bucket("long")], arguments, stored)
