"""Copies of consecutive elements to shared memory as vectors, in loops whose copies run ahead.

for v in T.serial(8):
X[i, 8 * p + v] = A[i, 4 * p + v // 2, v % 2]

Both are contiguous in memory if the slots of a group are the last dimension of A, and an asynchronous copy
then has all of the elements. The implementation of an intrinsic cannot say so: the arrays of a program that
it matches may be stored in another order, and their elements are copied one by one.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from gossamer_cuda_mma_sp.codegen.fragments.fragment_table import FragmentTable
from gossamer_ir.analysis.statements.async_copies import COPIED_BYTES
from gossamer_ir.analysis.statements.software_pipelining import is_pipelined
from gossamer_ir.arith.affine import Affine, affine_of
from gossamer_ir.core.build import ONE, ZERO, binary, floordiv, index, index_var, integer_value
from gossamer_ir.core.dtypes import DType
from gossamer_ir.nodes import Expr, For, Lanes, Load, Node, Ramp, Store
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.rewrite import rewrite
from gossamer_ir.traversal.substitute import substitute


def vectorize_copies(loop: For, table: FragmentTable) -> For:
    """Return a loop with copies of 4, 8 or 16 bytes as vectors, if it is pipelined; else the same loop.

    A vector may go on in the next rows of the array that is copied: they follow each other in memory.
    """
    if not is_pipelined(loop):
        return loop

    def rule(node: Node) -> Any | None:
        return _vector_copy(node, table) if isinstance(node, For) else None

    changed: For = rewrite(loop, rule)
    return changed


# Other loops: no copies of single elements.
def _vector_copy(loop: For, table: FragmentTable) -> Store | None:
    """Return the store of the vector that a loop copies; None for any other loop."""
    count = integer_value(loop.extent)
    match loop:
        case For(
            kind="serial",
            start=start,
            body=(Store(value=Load(predicate=None) as load, predicate=None) as store,),
        ) if start == ZERO and count is not None and store.buffer in table.shared:
            source, dtype = table.arrays.get(load.buffer), DType.parse(load.dtype)
            if source is None or count * dtype.bits // 8 not in COPIED_BYTES:
                return None
            stored = _vector(store.indices, loop.var, count)
            loaded = _vector(load.indices, loop.var, count) or _vector_of_rows(
                load.indices, loop.var, count, width=integer_value(source.shape[-1])
            )
            if stored is None or loaded is None or not _is_aligned(stored[-1], count):
                return None
            vector = replace(load, indices=loaded, dtype=replace(dtype, lanes=count).text)
            return replace(store, indices=stored, value=vector)
    return None


def _vector(indices: tuple[Expr, ...], name: str, count: int) -> tuple[Expr, ...] | None:
    """Return the indices of consecutive elements along the last dimension; None for others."""
    *outer, last = indices
    others = affine_of(last) - Affine({index_var(name): 1}, 0)
    if name in free_vars(*outer) or name in free_vars(*others.terms):
        return None
    return (*outer, _ramp(substitute(last, {name: ZERO}), count))


def _vector_of_rows(
    indices: tuple[Expr, ...], name: str, count: int, *, width: int | None
) -> tuple[Expr, ...] | None:
    """Return the indices of consecutive elements in consecutive rows of so many elements; None for others."""
    if width is None or len(indices) < 2:
        return None
    *outer, row, last = indices
    at, size = index_var(name), index(width)
    others = affine_of(row) - Affine({floordiv(at, size): 1}, 0)
    is_in_row = last == binary("floormod", at, size)
    if not is_in_row or name in free_vars(*outer) or name in free_vars(*others.terms):
        return None
    return (*outer, substitute(row, {name: ZERO}), _ramp(ZERO, count))


def _ramp(base: Expr, count: int) -> Ramp:
    return Ramp(base, ONE, Lanes(count))


def _is_aligned(vector: Expr, count: int) -> bool:
    """Return whether a vector begins at a multiple of its size in a row."""
    assert isinstance(vector, Ramp)
    base = affine_of(vector.base)
    return all(by % count == 0 for by in (*base.terms.values(), base.constant))
