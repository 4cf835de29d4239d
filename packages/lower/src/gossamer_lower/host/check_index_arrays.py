"""Tests the index arrays that a loop over rows reads, just before it reads them."""

from __future__ import annotations

import msgspec

from gossamer_ir.core import build
from gossamer_ir.core.annotations import CHECK_INDEX_ARRAYS
from gossamer_ir.nodes import Binary, Expr, For, Function, Let, Module, Stmt, Var
from gossamer_ir.traversal.names import namer_of
from gossamer_lower.host.helpers.array_tests import end_test, row_tests
from gossamer_lower.host.helpers.row_loop import CompressedArrays, RowLoop, row_loop_of
from gossamer_lower.lowering_pass import lowering_pass
from gossamer_lower.statements.rebuild import map_statements, with_body

INDICES_PER_BLOCK = 1024
"""The mean number of indices in a block of rows: with the values, they should still be in the L1 cache when
they are used. Measured with spmv and rows of 5 and 50 elements: 256 to 1,024 cost 8 to 10 percent, 2,048 13
to 20, and 4,096 15 to 32; arrays that are tested as a whole before cost 10 to 26."""

MIN_ROWS = 16
"""The least number of rows in a block: one vector of offsets. Long rows do not fit in the L1 cache anyway."""


@lowering_pass(takes=("flat",))
def check_index_arrays(module: Module) -> Module:
    """Test index arrays inside the kernel, if the entry has the annotation `check_index_arrays`.

    The parallel loop over the rows of a compressed axis runs in blocks, whose offsets and indices are tested
    just before their rows are computed, so that they leave memory once. The facts about these arrays are
    dropped: callers need not check them. A test that fails stops the kernel as a bounds check does; blocks
    before it are computed.

    The module is returned as it is if it has other facts or loops, or if a row is not proved to use its own
    elements only.

    >>> from gossamer_ir.script import parse_module, print_expr
    >>> from gossamer_lower import lower_to_flat
    >>> before = parse_module('''
    ... @T.prim_func
    ... def gather(p: T.handle, c: T.handle, x: T.handle, y: T.handle,
    ...            m: T.int64, n: T.int64, nnz: T.int64) -> None:
    ...     T.func_attr({"sparse_tir_level": 0, "check_index_arrays": True})
    ...     P = T.match_buffer(p, (m + 1,), "int64")
    ...     C = T.match_buffer(c, (nnz,), "int64")
    ...     X = T.match_buffer(x, (n,), "float32")
    ...     Y = T.match_buffer(y, (nnz,), "float32")
    ...     T.assume(monotone(P))
    ...     T.assume(in_range(P, 0, nnz + 1))
    ...     T.assume(in_range(C, 0, n))
    ...     for i in T.parallel(m):
    ...         for j in T.serial(P[i + 1] - P[i]):
    ...             Y[P[i] + j] = X[C[P[i] + j]]
    ... ''')
    >>> entry, rows = lower_to_flat(before).functions  # this pass is one of its passes
    >>> print_expr(entry.body[0].condition)
    'T.int64(P[0]) == 0 and T.int64(P[m]) == nnz'
    >>> entry.facts, rows.facts
    ((), ())
    """
    entry = next(function for function in module.functions if function.name == module.entry)
    if not dict(entry.annotations).get(CHECK_INDEX_ARRAYS):
        return module
    found = row_loop_of(module)
    if found is None:
        return module
    functions = (_with_end_test(entry, found), _in_blocks(found))
    return msgspec.structs.replace(module, functions=tuple(map(_without_facts, functions)))


def _with_end_test(entry: Function, found: RowLoop) -> Function:
    def tested(stmt: Stmt) -> tuple[Stmt, ...]:
        return (*end_test(found.arrays), stmt) if stmt is found.launch else (stmt,)

    return with_body(entry, map_statements(entry.body, tested))


def _without_facts(function: Function) -> Function:
    return msgspec.structs.replace(function, facts=())


def _in_blocks(found: RowLoop) -> Function:
    """Return the function with its loop in blocks of rows."""

    def blocked(stmt: Stmt) -> tuple[Stmt, ...]:
        return _blocks(found) if stmt is found.loop else (stmt,)

    return with_body(found.function, map_statements(found.function.body, blocked))


def _blocks(found: RowLoop) -> tuple[Stmt, ...]:
    loop, namer = found.loop, namer_of(found.function)
    size, block, first, last = (
        Var(namer.fresh(name), "int64") for name in ("block_size", "block", "first", "last")
    )
    _, end, *_ = found.function.params
    whole = build.sub(build.add(loop.extent, size), build.ONE)
    limit = Binary("min", build.add(first, size), build.index_var(end.name))
    body = (
        Let(first, build.add(loop.start, Binary("mul", block, size))),
        Let(last, limit),
        *row_tests(found.arrays, first.name, last.name, namer=namer),
        msgspec.structs.replace(loop, start=first, extent=build.sub(last, first)),
    )
    blocks = For(block.name, build.ZERO, Binary("floordiv", whole, size), body)
    return (Let(size, _rows_per_block(found.arrays)), blocks)


def _rows_per_block(arrays: CompressedArrays) -> Expr:
    total = build.mul(build.index(INDICES_PER_BLOCK), arrays.rows)
    rows = Binary("floordiv", total, Binary("max", arrays.nnz, build.ONE))
    return Binary("max", build.index(MIN_ROWS), rows)
