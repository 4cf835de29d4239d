"""Products in formats of their own, by default schedules in scalable vectors, emulated at every
vector length.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import gossamer as gs
from gossamer_formats import from_scipy
from gossamer_ir.script import parse_module
from gossamer_ir.transform.specialize import specialize
from gossamer_testkit import script
from tests.fuzzing.execution.compilers import VECTOR_LENGTHS
from tests.integration.emulated_targets import bits_of

pytestmark = [pytest.mark.unserialized, pytest.mark.usefixtures("emulated")]

RNG = np.random.default_rng(3)


def integers(*shape):
    return RNG.integers(-3, 4, shape).astype(np.float32)


def matrix(rows, columns):
    """A matrix of small integers with empty rows, and a dense one."""
    dense = integers(rows, columns) * (RNG.random((rows, columns)) < 0.3)
    dense[0], dense[rows // 2 :: 5] = 2, 0
    return sparse.csr_array(dense.astype(np.float32))


@pytest.mark.parametrize("bits", VECTOR_LENGTHS)
@pytest.mark.parametrize("height", [2, 8, 12, 32])
def test_slices_of_rows_are_right(height, bits):
    stored, x = matrix(37, 40), integers(40)
    tensor = from_scipy(stored).asformat("sell", height=height, sigma=16)
    result = gs.spmv(tensor, x, target=f"llvm-sve:vector_bits={bits}")
    np.testing.assert_array_equal(result, stored @ x)


@pytest.mark.parametrize("bits", VECTOR_LENGTHS)
@pytest.mark.parametrize(("rows", "columns"), [(2, 2), (3, 3), (4, 1)])
def test_slices_of_block_rows_are_right(rows, columns, bits):
    stored, x = matrix(48, 36), integers(36)
    how = {"block_rows": rows, "block_columns": columns, "height": 8, "sigma": 16}
    tensor = from_scipy(stored).asformat("blocked_sell", **how)
    result = gs.spmv(tensor, x, target=f"llvm-sve:vector_bits={bits}")
    np.testing.assert_array_equal(result, stored @ x)


@pytest.mark.parametrize("bits", VECTOR_LENGTHS)
@pytest.mark.parametrize(("height", "width"), [(1, 3), (4, 4), (3, 8), (16, 16), (2, 20)])
def test_columns_of_blocks_are_right(height, width, bits):
    pattern, x = matrix(7, 6), integers(6 * width)
    blocks = integers(pattern.nnz, height, width)
    shape = (7 * height, 6 * width)
    stored = sparse.bsr_array((blocks, pattern.indices, pattern.indptr), shape=shape)
    result = gs.spmv(stored, x, target=f"llvm-sve:vector_bits={bits}")
    np.testing.assert_array_equal(result, stored @ x)


@pytest.mark.parametrize("least", [128, 256])
@pytest.mark.parametrize("features", [1, 7, 40])
def test_tiles_of_columns_are_right(features, least, emulated_target):
    """The program itself, since `gs.spmm` would convert so small a matrix. Kernels for vectors that may have
    the least length have two versions."""
    if bits_of(emulated_target) < least:
        pytest.skip("the target has shorter vectors")
    stored, dense = matrix(37, 48), integers(48, features)
    arrays = from_scipy(stored).asformat("tiled_csr", tile_columns=16).arrays
    program = specialize(parse_module(script("tiled_csr_spmm")), {"feat_size": features})
    kernel = gs.compile(program, target=f"{emulated_target},min_vector_bits={least}")
    result = np.zeros((37, features), np.float32)
    kernel(arrays["data"], dense, result, arrays["indptr"], arrays["indices"])
    np.testing.assert_array_equal(result, stored @ dense)
