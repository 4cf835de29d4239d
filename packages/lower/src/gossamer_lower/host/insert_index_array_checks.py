"""Tests the index arrays that a loop over rows reads, just before it reads them."""

from __future__ import annotations

from msgspec.structs import replace

from gossamer_ir.core.annotations import CHECK_INDEX_ARRAYS
from gossamer_ir.nodes import Module
from gossamer_lower.host.index_array_tests.row_loop import row_loop_of
from gossamer_lower.host.index_array_tests.tested_blocks import in_tested_blocks
from gossamer_lower.lowering_pass import lowering_pass


@lowering_pass(
    takes=("flat",),
    acts_on="checked index arrays",
    after={
        "hoist_allocations": "the sizes of allocations, from the offsets of all rows, are outside of the loop"
    },
    before={"unswitch_on_alignment": "the loop over rows is one loop"},
)
def insert_index_array_checks(module: Module) -> Module:
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
    >>> entry, rows = lower_to_flat(before).functions  # runs insert_index_array_checks
    >>> print_expr(entry.body[0].condition)
    'T.int64(P[0]) == 0 and T.int64(P[m]) == nnz'
    >>> entry.facts, rows.facts
    ((), ())
    """
    entry = next(function for function in module.functions if function.name == module.entry)
    if not dict(entry.annotations).get(CHECK_INDEX_ARRAYS):
        return module
    row_loop = row_loop_of(module)
    if row_loop is None:
        return module
    return replace(module, functions=in_tested_blocks(entry, row_loop))
