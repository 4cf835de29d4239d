"""Rows that an index counts over blocks of one size are spatial; others may be the same."""

from __future__ import annotations

import pytest

from gossamer_ir.nodes import Block
from gossamer_ir.script import parse_module
from gossamer_ir.traversal.walk import walk
from gossamer_lower import lower_iterations

SUMS = """
@T.prim_func
def sums(a: T.handle, y: T.handle, m: T.int64) -> None:
    I = T.sp.dense_fixed(m * 4)
    IO = T.sp.dense_fixed(m)
    J = T.sp.dense_fixed(7)
    II = T.sp.dense_fixed(4)
    A = T.sp.match_buffer(a, (IO, J, II), "float32")
    Y = T.sp.match_buffer(y, (I,), "float32")
    with T.sp.iteration([IO, J, II], "SRS", "sums") as [io, j, ii]:
        with T.init():
            Y[INDEX] = 0.0
        Y[INDEX] = Y[INDEX] + A[io, j, ii]
"""


@pytest.mark.parametrize(
    ("index", "kinds"),
    [
        ("io * 4 + ii", "SRS"),
        ("io * 3 + ii", "RRR"),
        ("io * 4 + io", "RRR"),
        ("ii * 4 + io", "RRR"),
    ],
)
def test_kinds(index, kinds):
    module = lower_iterations(parse_module(SUMS.replace("INDEX", index)))
    (block,) = (node for node in walk(module) if isinstance(node, Block))
    assert "".join(iterator.kind for iterator in block.iters) == kinds
