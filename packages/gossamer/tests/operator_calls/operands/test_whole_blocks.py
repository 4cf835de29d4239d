"""Programs over whole blocks have no conditions, and compute the same."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from gossamer.operator_calls.operands.stored_matrix import StoredMatrix, format_of_storage
from gossamer.operator_calls.operator_program import Variant, module_of
from gossamer.operators.spmm import PROGRAM
from gossamer_formats import from_scipy
from gossamer_formats.descriptions.csr import csr
from gossamer_ir.interpret import run
from gossamer_ir.nodes import If
from gossamer_ir.transform.whole_blocks import block_counts
from gossamer_ir.traversal.walk import collect


@pytest.mark.parametrize(
    ("shape", "is_whole"), [((6, 8), True), ((4, 4), True), ((5, 8), False), ((6, 7), False)]
)
def test_only_partial_blocks_have_conditions(shape, is_whole):
    random = np.random.default_rng(2)
    dense = random.integers(-2, 3, shape) * (random.random(shape) < 0.4)
    A = from_scipy(sparse.csr_array(dense.astype(np.float32)))
    storage = A.asformat("bsr", block_rows=2, block_columns=4).storage
    stored_format = format_of_storage(storage)
    assert stored_format.has_whole_blocks == is_whole
    module = module_of(PROGRAM, Variant(features=3), stored_format)
    assert bool(collect(If, *module.functions[0].body)) != is_whole
    B = random.integers(-2, 3, (shape[1], 3)).astype(np.float32)
    C = np.full((shape[0], 3), np.nan, np.float32)
    run(module, StoredMatrix(storage, stored_format).arguments(PROGRAM, {"b": B, "c": C}))
    np.testing.assert_array_equal(C, dense @ B)


def test_csr_has_no_blocks():
    assert block_counts(csr()) == ()
