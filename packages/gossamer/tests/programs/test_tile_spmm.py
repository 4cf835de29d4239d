"""Products with a matrix in tiles of columns (`tiled_csr`), scheduled by the rule for them, against dense
NumPy in float64.
"""

from __future__ import annotations

from functools import cache
from math import prod

import numpy as np
import pytest
from masks import data
from scipy import sparse
from script_runs import assert_everywhere, call, guards

import gossamer as gs
from gossamer.compilation.pipeline import flat_module
from gossamer_formats import SparseTensor, convert, from_scipy
from gossamer_formats.descriptions.tiled_csr import MAX_NARROW, tiled_csr
from gossamer_formats.storage import Storage
from gossamer_ir.core.build import integer_value
from gossamer_ir.errors import FormatError
from gossamer_ir.interchange.records import Stats
from gossamer_ir.nodes import Allocate
from gossamer_ir.script import parse_module
from gossamer_ir.transform.retype_module import retype_module
from gossamer_ir.transform.specialize import specialize
from gossamer_ir.traversal.walk import collect
from gossamer_machine import Machine
from gossamer_schedule.rules import default_schedule, schedule_report
from gossamer_testkit import script

SHAPES = [(0, 0), (0, 8), (3, 0), (1, 4), (5, 8), (70, 24), (200, 40)]


@cache
def product(features=None, *, width=4, dtype="float32", index="int32"):
    """The script for tiles of a width."""
    text = script("tiled_csr_spmm").replace("16", str(width))
    module = retype_module(parse_module(text), dtype=dtype, index_dtype=index)
    return specialize(module, {} if features is None else {"feat_size": features})


def matrix(rows, columns, *, dtype="float32"):
    """A matrix with empty rows at both ends, an empty tile and a dense row."""
    random = np.random.default_rng(rows * 1000 + columns)
    whole = random.integers(-4, 5, (rows, columns)) * (random.random((rows, columns)) < 0.2)
    whole[:1] = whole[-1:] = 0
    whole[2:3] = 3
    whole[:, 4:8] = 0
    return whole.astype(dtype)


def arguments(whole, features, *, width=4, index="int32"):
    """The arguments of a product with a matrix of whole tiles, and the result."""
    tensor = convert(from_scipy(sparse.csr_array(whole)), "tiled_csr", tile_columns=width).tensor
    b, c = (
        data((whole.shape[1], features), whole.dtype),
        data((len(whole), features), whole.dtype, 3),
    )
    stored = tensor.arrays
    values = {
        "a": stored["data"], "indptr": stored["indptr"].astype(index),
        "indices": stored["indices"].astype(index), "b": b, "c": c, "m": whole.shape[0],
        "n": whole.shape[1], "nnz": len(stored["data"]), "feat_size": features,
    }  # fmt: skip
    return values, c + whole.astype(np.float64) @ b.astype(np.float64)


# Interpreters are slow; the next test runs kernels on large matrices.
@pytest.mark.parametrize(
    ("shape", "features"),
    [
        (shape, features)
        for shape in SHAPES
        for features in (1, 3, 16, 100)
        if shape[0] * features < 4000
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_product_at_every_stage(shape, features, dtype):
    module = product(features, dtype=dtype)
    values, expected = arguments(matrix(*shape, dtype=dtype), features)
    assert schedule_report(module, Machine()).rule == "tile_spmm"
    assert guards(module) == []
    assert_everywhere(module, values, c=expected)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_threads_share_the_feature_tiles_of_a_panel(dtype):
    module = product(520, dtype=dtype)
    assert any(step.op == "fuse" for step in default_schedule(module, Machine()).loop)
    values, expected = arguments(matrix(5, 8, dtype=dtype), 520)
    assert guards(module) == []
    assert_everywhere(module, values, c=expected)


STATS = [None, *(Stats(rows, 64, 9 * rows, 60, 1) for rows in (64, 1024, 1 << 20))]


@pytest.mark.parametrize("stats", STATS)
@pytest.mark.parametrize("features", [1, 3, 15, 16, 100, 128, 300, 520])
@pytest.mark.parametrize(("dtype", "index"), [("float32", "int32"), ("float64", "int64")])
def test_a_product_of_many_rows(features, stats, dtype, index):
    """Rows are not a multiple of a panel, nor features of a tile of features."""
    module = product(features, width=16, dtype=dtype, index=index)
    kernel = gs.compile(module, schedule=default_schedule(module, Machine(), stats))
    for rows, columns in ((1, 16), (63, 48), (1300, 32)):
        values, expected = arguments(
            matrix(rows, columns, dtype=dtype), features, width=16, index=index
        )
        call(kernel, values)
        np.testing.assert_array_equal(values["c"], expected)


@pytest.mark.parametrize("width", [1, 7, 512, 3000])
def test_a_product_with_tiles_of_other_widths(width):
    module = product(40, width=width)
    values, expected = arguments(matrix(30, 2 * width), 40, width=width)
    call(gs.compile(module), values)
    np.testing.assert_array_equal(values["c"], expected)


@pytest.mark.parametrize("rows", ["m", "64", "m * 2", "m // 2", "m + 3"])
@pytest.mark.parametrize("tiles", ["n // 16", "n", "n + 2", "(n + 15) // 16"])
def test_programs_with_computed_sizes_are_lowered(rows, tiles):
    """Bounds checks of what is not proved are outside of lanes."""
    text = (
        script("tiled_csr_spmm")
        .replace("n // 16", tiles)
        .replace("dense_fixed(m", f"dense_fixed({rows}")
    )
    module = specialize(parse_module(text), {"feat_size": 40})
    rule = schedule_report(module, Machine()).rule
    assert (rule == "tile_spmm") == (rows in ("m", "64"))
    assert flat_module(module).stage == "flat"


def test_packed_rows_are_reduced_to_a_tile_that_fits_the_stack():
    """The buffers have the constant shapes of a tile and of the sums of a row."""
    flat = flat_module(product(512, width=256))
    bodies = [stmt for function in flat.functions for stmt in function.body]
    shapes = [node.buffer.shape for stmt in bodies for node in collect(Allocate, stmt)]
    sizes = sorted(prod(map(integer_value, shape)) for shape in shapes)
    assert sizes == [4 * 16, 256 * 4 * 16]


def test_a_part_in_tiles_of_columns_adds_to_the_result():
    """Whole tiles, and the columns after them in CSR."""
    whole = matrix(90, 45)
    stored = sparse.csr_array(whole)
    A = gs.decompose(stored, [("tiled_csr", lambda i, j: j < 40, {"tile_columns": 8}), "csr"])
    for features in (1, 16, 33):
        b = data((45, features), "float32")
        np.testing.assert_array_equal(gs.spmm(A, b), stored @ b)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("width", "stride"), [(20, 1), (MAX_NARROW, 4000)])
def test_products_with_columns_of_16_bits(width, stride, dtype):
    """The largest column of the widest tile does not fit into 16 bits with a sign."""
    stored = sparse.csr_array(matrix(90, 40)).astype(dtype)
    shape = (90, -(-40 * stride // width) * width)
    stored = sparse.csr_array((stored.data, stored.indices * stride, stored.indptr), shape)
    description = tiled_csr(is_whole=True, is_narrow=True)
    A = gs.decompose(stored, [(description, lambda i, j: j >= 0, {"tile_columns": width})])
    indices = A.parts[0].tensor.arrays["indices"]
    assert indices.dtype == np.uint16
    assert stride == 1 or indices.max() > 1 << 15
    for features in (1, 16, 33):
        b = data((shape[1], features), dtype)
        np.testing.assert_array_equal(gs.spmm(A, b), stored @ b)
    np.testing.assert_array_equal(A.toarray(), stored.toarray())


def test_a_tile_with_more_columns_than_16_bits_have_is_refused():
    stored = sparse.csr_array(([1.0], ([0], [MAX_NARROW])), (1, 2 * MAX_NARROW + 2))
    description = tiled_csr(is_whole=True, is_narrow=True)
    with pytest.raises(FormatError) as caught:
        convert(from_scipy(stored), description, tile_columns=MAX_NARROW + 1)
    assert caught.value.code == "format.index_dtype"


def test_only_whole_tiles_are_stored_on_request():
    description = tiled_csr(is_whole=True)
    stored = from_scipy(sparse.csr_array(matrix(9, 12)))
    tensor = convert(stored, description, tile_columns=4).tensor
    np.testing.assert_array_equal(tensor.toarray(), matrix(9, 12))
    assert isinstance(tensor, SparseTensor)
    assert isinstance(tensor.storage, Storage)
    late = np.zeros((9, 14), np.float32)
    late[3, 13] = 1.0
    with pytest.raises(FormatError):
        convert(from_scipy(sparse.csr_array(late)), description, tile_columns=4)
