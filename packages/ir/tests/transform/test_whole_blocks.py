"""Programs over whole blocks have no conditions that only a partial block needs."""

import numpy as np
import pytest

from gossamer_ir.interpret import run
from gossamer_ir.nodes import If
from gossamer_ir.script import parse_format, parse_module
from gossamer_ir.transform.whole_blocks import block_counts, without_partial_blocks
from gossamer_ir.traversal.walk import collect

ROW_SUMS = """
@T.prim_func
def sums(a: T.handle, y: T.handle, m: T.int64, n: T.int64, height: T.int64) -> None:
    IO = T.sp.dense_fixed(BLOCKS)
    II = T.sp.dense_fixed(height)
    J = T.sp.dense_fixed(n)
    I = T.sp.dense_fixed(m)
    A = T.sp.match_buffer(a, (IO, II, J), "float32")
    Y = T.sp.match_buffer(y, (I,), "float32")
    with T.sp.iteration([IO, II, J], "SSR", "sums") as [io, ii, j]:
        if CONDITION:
            Y[io * height + ii] = Y[io * height + ii] + A[io, ii, j]
"""
ROUNDED_UP = "(m + height - 1) // height"
IN_BOUNDS = "io * height + ii < m"


def row_sums(*, blocks=ROUNDED_UP, condition=IN_BOUNDS):
    return parse_module(ROW_SUMS.replace("BLOCKS", blocks).replace("CONDITION", condition))


def conditions_of(module):
    return [node.condition for node in collect(If, *module.functions[0].body)]


def test_a_condition_that_always_holds_is_left_out():
    module = without_partial_blocks(row_sums())
    assert conditions_of(module) == []
    blocks = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    sums = np.zeros(6, np.float32)
    run(module, {"a": blocks, "y": sums, "m": 6, "n": 4, "height": 3})
    np.testing.assert_array_equal(sums, blocks.sum(axis=2).reshape(-1))


@pytest.mark.parametrize("condition", ["j < 2", "io * height + ii < m - 1"])
def test_other_conditions_stay(condition):
    both = row_sums(condition=f"{IN_BOUNDS} and {condition}")
    assert conditions_of(without_partial_blocks(both)) == conditions_of(
        row_sums(condition=condition)
    )


def test_the_number_of_blocks_is_not_rounded_up():
    exact = row_sums(blocks="m // height")
    assert without_partial_blocks(row_sums()).functions[0].axes == exact.functions[0].axes


@pytest.mark.parametrize("length", ["m", "m // height", "(m + height) // height"])
def test_only_a_quotient_that_is_rounded_up_counts_blocks(length):
    rows = parse_format(f"""
@T.format
def rows(a: T.handle, m: T.int64, n: T.int64, height: T.int64) -> None:
    IO = T.sp.dense_fixed({length})
    J = T.sp.dense_fixed(n)
    A = T.sp.match_buffer(a, (IO, J), "float32")
""")
    assert block_counts(rows) == ()
