"""Splits the loop over rows into blocks, each after the tests of its index arrays."""

from __future__ import annotations

from msgspec.structs import replace

from gossamer_ir.core.build import ONE, ZERO, add, index, index_var, mul, sub
from gossamer_ir.nodes import Binary, Expr, For, Function, Let, Stmt, Var
from gossamer_ir.traversal.names import namer_of
from gossamer_lower.host.index_array_tests.array_tests import end_test, row_tests
from gossamer_lower.host.index_array_tests.row_loop import CompressedArrays, RowLoop
from gossamer_lower.statements.rebuild import map_stmts, with_body

INDICES_PER_BLOCK = 1024
"""The mean number of indices in a block of rows: with the values, they should still be in the L1 cache when
they are used. Measured with spmv and rows of 5 and 50 elements: 256 to 1,024 cost 8 to 10 percent, 2,048 13
to 20, and 4,096 15 to 32; arrays that are tested as a whole before cost 10 to 26."""

MIN_ROWS = 16
"""The least number of rows in a block: one vector of offsets. Long rows do not fit in the L1 cache anyway."""


def in_tested_blocks(entry: Function, row_loop: RowLoop) -> tuple[Function, Function]:
    """Return the entry, which tests the ends of the offsets, and the function with the loop in blocks, which
    test the rest. Both have no facts."""
    return _without_facts(_with_end_test(entry, row_loop)), _without_facts(_in_blocks(row_loop))


def _with_end_test(entry: Function, row_loop: RowLoop) -> Function:
    def add_test(stmt: Stmt) -> tuple[Stmt, ...]:
        return (*end_test(row_loop.arrays), stmt) if stmt is row_loop.launch else (stmt,)

    return with_body(entry, map_stmts(entry.body, add_test))


def _without_facts(function: Function) -> Function:
    return replace(function, facts=())


def _in_blocks(row_loop: RowLoop) -> Function:
    """Return the function with its loop in blocks of rows."""

    def split_into_blocks(stmt: Stmt) -> tuple[Stmt, ...]:
        return _blocks(row_loop) if stmt is row_loop.loop else (stmt,)

    return with_body(row_loop.function, map_stmts(row_loop.function.body, split_into_blocks))


def _blocks(row_loop: RowLoop) -> tuple[Stmt, ...]:
    loop, namer = row_loop.loop, namer_of(row_loop.function)
    size, block, first, last = (
        Var(namer.fresh(name), "int64") for name in ("block_size", "block", "first", "last")
    )
    _, end, *_ = row_loop.function.params
    whole = sub(add(loop.extent, size), ONE)
    limit = Binary("min", add(first, size), index_var(end.name))
    body = (
        Let(first, add(loop.start, Binary("mul", block, size))),
        Let(last, limit),
        *row_tests(row_loop.arrays, first.name, last.name, namer=namer),
        replace(loop, start=first, extent=sub(last, first)),
    )
    blocks = For(block.name, ZERO, Binary("floordiv", whole, size), body)
    return (Let(size, _rows_per_block(row_loop.arrays)), blocks)


def _rows_per_block(arrays: CompressedArrays) -> Expr:
    total = mul(index(INDICES_PER_BLOCK), arrays.rows)
    rows = Binary("floordiv", total, Binary("max", arrays.nnz, ONE))
    return Binary("max", index(MIN_ROWS), rows)
