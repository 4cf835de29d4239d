"""The semantics of products of blocks are those of NumPy, and operands have the patterns of instructions."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer_ir.core.dtypes import SUM_DTYPES
from gossamer_ir.interpret import run
from gossamer_ir.script import parse_module
from gossamer_machine.intrinsics.block_products import block_product_semantics
from gossamer_machine.intrinsics.n_m_operands import SPECIAL_OPERANDS, n_m_operands


@pytest.mark.parametrize("dtype", ["float16", "float64", "int8"])
def test_all_blocks_of_a_row_are_multiplied_and_added(dtype):
    blocks, rows, columns, features = 2, 3, 4, 5
    draw = np.random.default_rng(3)
    a = draw.integers(-4, 5, (blocks, rows, columns)).astype(dtype)
    b = draw.integers(-4, 5, (blocks, columns, features)).astype(dtype)
    c = np.ones((rows, features), SUM_DTYPES[dtype])
    sizes = {"blocks": blocks, "rows": rows, "columns": columns, "features": features}
    run(parse_module(block_product_semantics(dtype)), {"a": a, "b": b, "c": c, **sizes})
    expected = 1 + np.einsum("qip,qpj->ij", a.astype(np.float64), b.astype(np.float64))
    assert np.array_equal(c, expected)


def test_precisions_have_the_columns_that_their_patterns_say():
    for name in (*SUM_DTYPES, *SPECIAL_OPERANDS):
        operands = n_m_operands(name)
        stored, group = map(int, operands.pattern.split(":"))
        assert (2 * stored, operands.group) == (group, group)
        assert operands.stored_as in SUM_DTYPES
