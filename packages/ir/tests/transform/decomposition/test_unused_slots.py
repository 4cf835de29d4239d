"""Slots of a part are tested for being inside of the tensor only where that is not proved."""

from __future__ import annotations

import pytest
from decomposed_programs import ROW_SUMS

from gossamer_ir.nodes import If
from gossamer_ir.script import parse_format, print_expr
from gossamer_ir.transform.decomposition.program_in_parts import program_in_parts
from gossamer_ir.traversal.walk import stmts
from gossamer_ir.verify import verify

TILED = """
@T.format
def tiled(data: T.handle, indptr: T.handle, indices: T.handle, m: T.int64, n: T.int64, nnz: T.int64,
          width: T.int64) -> None:
    JO = T.sp.dense_fixed(TILES)
    I = T.sp.dense_fixed(m, parent=JO)
    J = T.sp.compressed_varied(I, (width, nnz), (indptr, indices), "int32")
    A = T.sp.match_buffer(data, (JO, I, J), "float32")
    T.sp.map(lambda jo, i, j: (i, COLUMN), shape=(m, n))
"""
BLOCKS = """
@T.format
def blocks(data: T.handle, indptr: T.handle, indices: T.handle, mb: T.int64, nb: T.int64,
           stored: T.int64, rows: T.int64, columns: T.int64, m: T.int64, n: T.int64) -> None:
    IO = T.sp.dense_fixed(EXTENTI)
    JO = T.sp.compressed_varied(IO, (EXTENTJ, stored), (indptr, indices), "int32")
    II = T.sp.dense_fixed(rows)
    JI = T.sp.dense_fixed(columns)
    A = T.sp.match_buffer(data, (IO, JO, II, JI), "float32")
    T.sp.map(lambda io, jo, ii, ji: (io * rows + ii, jo * columns + ji), shape=(m, n))
"""


def tiled(tiles, column="jo * width + j"):
    return TILED.replace("TILES", tiles).replace("COLUMN", column)


def blocks(rows, columns):
    return BLOCKS.replace("EXTENTI", rows).replace("EXTENTJ", columns)


def conditions(text, **sizes):
    """The conditions of the slots in the program of a part, in which sizes are fixed."""
    module = program_in_parts(
        ROW_SUMS, ["A"], {"part": parse_format(text)}, fixed_sizes={"part": sizes}
    )
    verify(module)
    (function,) = module.functions
    conditions = [stmt for stmt in stmts(function.body) if isinstance(stmt, If)]
    return sorted(print_expr(stmt.condition) for stmt in conditions)


UP = "(n + width - 1) // width"
TILES = {
    "whole tiles": (tiled("n // width"), {"width": 4}, []),
    "tiles of one column": (tiled(UP), {"width": 1}, []),
    "one tile": (tiled("1", "j"), {"width": 4}, ["j_part < n"]),
    "a partial last tile": (tiled(UP), {"width": 4}, ["jo_part * 4 + j_part < n"]),
    "tiles of any width": (tiled(UP), {}, ["jo_part * width_part + j_part < n"]),
    "a column to the left": (
        tiled("n // width", "jo * width + j - 1"), {"width": 4},
        ["jo_part * 4 + j_part - 1 >= 0"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TILES)
def test_tiles(name):
    text, sizes, expected = TILES[name]
    assert conditions(text, **sizes) == expected


def test_blocks_are_inside_along_the_dimensions_that_they_divide():
    sizes = {"rows": 2, "columns": 3}
    up = "(m + rows - 1) // rows", "(n + columns - 1) // columns"
    assert conditions(blocks("m // rows", "n // columns"), **sizes) == []
    assert conditions(blocks("m // rows", up[1]), **sizes) == ["jo_part * 3 + ji_part < n"]
    # The init stores to rows only.
    assert conditions(blocks(*up), **sizes) == [
        "io_part * 2 + ii_part < m",
        "io_part * 2 + ii_part < m and jo_part * 3 + ji_part < n",
    ]
