"""Buffers that a nest of loops fills right after they are allocated, so that nothing reads their memory as it
was.

Rows of a dense operand are packed again for each tile of columns. To clear the memory before would take as
many stores as the copy, and LLVM removes stores that later ones overwrite only if these are in no loop.
"""

from __future__ import annotations

from collections.abc import Sequence

from gossamer_ir.arith.affine import affine_of
from gossamer_ir.core.build import ONE, ZERO, index_var, integer_value
from gossamer_ir.nodes import Allocate, Buffer, Expr, For, Function, Ramp, Stmt, Store
from gossamer_ir.traversal.buffer_uses import buffers_read
from gossamer_ir.traversal.fields import BODIES_BACKWARDS
from gossamer_ir.traversal.walk import every_stmt


def filled_buffers(function: Function) -> frozenset[str]:
    """Return the buffers that the statement after their allocation fills.

    >>> from gossamer_ir.script import parse_module
    >>> (function,) = parse_module('''
    ... @T.prim_func
    ... def copy(x: T.handle, n: T.int64) -> None:
    ...     T.stage("flat")
    ...     X = T.match_buffer(x, (n, 8), "float32")
    ...     Y = T.alloc_buffer((16, 8), "float32", scope="local")
    ...     for i in T.serial(16):
    ...         Y[i, T.ramp(0, 1, 8)] = X[i, T.ramp(0, 1, 8)]
    ...     X[0, 0] = Y[n, 0]
    ... ''').functions
    >>> filled_buffers(function)
    frozenset({'Y'})
    """
    bodies = [function.body]
    for stmt in every_stmt(function):
        bodies += (getattr(stmt, field) for field in BODIES_BACKWARDS[type(stmt)])
    return frozenset(name for body in bodies for name in _buffers_filled_in(body))


# Other statements: fill no buffer that they allocate.
def _buffers_filled_in(body: Sequence[Stmt]) -> list[str]:
    filled: list[str] = []
    allocated: list[Buffer] = []
    for stmt in body:
        if isinstance(stmt, Allocate):
            allocated.append(stmt.buffer)
        else:
            filled += (buffer.name for buffer in allocated if _is_filled_by(stmt, buffer))
            # This statement may read the others.
            allocated = []
    return filled


# Other statements: fill no buffer.
def _is_filled_by(stmt: Stmt, buffer: Buffer) -> bool:
    """Return whether a nest of loops of constant extent contains stores only, and these fill a buffer."""
    loops: dict[Expr, int] = {}
    body: tuple[Stmt, ...] = (stmt,)
    while len(body) == 1 and isinstance(loop := body[0], For):
        extent = integer_value(loop.extent)
        if loop.kind not in ("serial", "unrolled") or loop.start != ZERO or extent is None:
            return False
        loops[index_var(loop.var)] = extent
        body = loop.body
    stores = [inner for inner in body if isinstance(inner, Store)]
    if len(stores) < len(body) or buffer.name in buffers_read(*stores):
        return False
    columns = integer_value(buffer.shape[-1])
    if columns is None or 0 in loops.values():
        return False
    stored = {
        column
        for store in stores
        if store.buffer == buffer.name and store.predicate is None
        for column in _columns_of(store, buffer, loops)
    }
    return stored.issuperset(range(columns))


def _columns_of(store: Store, buffer: Buffer, loops: dict[Expr, int]) -> Sequence[int]:
    """Return the columns, elements of the last dimension, that a store in loops writes in all rows."""
    *rows, last = store.indices
    extents = [integer_value(extent) for extent in buffer.shape[:-1]]
    # Each row is the iteration of a loop of its own, that has as many.
    if len({*rows}) < len(rows) or [loops.get(row) for row in rows] != extents:
        return ()
    base, lanes = last, 1
    if isinstance(last, Ramp):
        if last.stride != ONE or last.lanes.scalable:
            return ()
        base, lanes = last.base, last.lanes.count
    first = affine_of(base)
    inner = {var: count for var, count in loops.items() if var not in rows}
    if not first.terms.keys() <= inner.keys():
        return ()
    starts = [first.constant]
    for var, step in first.terms.items():
        starts = [start + step * number for start in starts for number in range(inner[var])]
    return [start + lane for start in starts for lane in range(lanes)]
