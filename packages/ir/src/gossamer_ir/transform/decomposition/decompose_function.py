"""Stores a sparse tensor in several formats at once, and computes with each part.

The transformation is that of SparseTIR (Ye and others, ASPLOS 2023), with two differences. Elements are
initialized once, before all parts, also those that no part reaches. And a part may have slots without an
element only if these contribute nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from gossamer_ir.analysis.logical_elements import map_results
from gossamer_ir.nodes import (
    Function,
    Iteration,
    SparseBuffer,
    Stmt,
)
from gossamer_ir.transform.decomposition.decomposition_error import DecompositionError
from gossamer_ir.transform.decomposition.format_part import PartFormat, format_part
from gossamer_ir.transform.decomposition.part_iterations import conversions, decomposed_iteration
from gossamer_ir.transform.decomposition.remove_tensor import without_tensor
from gossamer_ir.traversal.effects import buffers_accessed
from gossamer_ir.traversal.names import namer_of


def decompose_function(
    function: Function,
    buffers: Sequence[str],
    formats: Sequence[PartFormat],
    *,
    converts: bool = False,
) -> Function:
    """Return the function with sparse buffers, which share their axes, stored in parts.

    Each iteration that uses the buffers is replaced by one for each part. What it initializes outside of
    the buffers is initialized before, in an iteration of its own. The parts then accumulate. The parameters
    of the undivided tensor are removed, unless the function `converts`: then an iteration for each part and
    buffer copies the elements. Together, the parts must hold each element once; this is not checked here.

    Raises `DecompositionError`.

    >>> from gossamer_ir.script import parse_format, parse_module
    >>> module = parse_module('''
    ... @T.prim_func
    ... def total(a: T.handle, y: T.handle, p: T.handle, x: T.handle, m: T.int64, n: T.int64) -> None:
    ...     I = T.sp.dense_fixed(m)
    ...     J = T.sp.compressed_varied(I, n, (p, x), "int32")
    ...     A = T.sp.match_buffer(a, (I, J), "float32")
    ...     Y = T.sp.match_buffer(y, (I,), "float32")
    ...     with T.sp.iteration([I, J], "SR", "total") as [i, j]:
    ...         with T.init():
    ...             Y[i] = 0.0
    ...         Y[i] = Y[i] + A[i, j]
    ... ''')
    >>> ell = parse_format('''
    ... @T.format
    ... def ell(data: T.handle, indices: T.handle, m: T.int64, n: T.int64, width: T.int64) -> None:
    ...     I = T.sp.dense_fixed(m)
    ...     J = T.sp.compressed_fixed(I, (n, width), indices, "int32")
    ...     A = T.sp.match_buffer(data, (I, J), "float32")
    ... ''')
    >>> function = decompose_function(module.functions[0], ["A"], [PartFormat("ell", ell)])
    >>> [param.name for param in function.params]
    ['y', 'm', 'n', 'data_ell', 'indices_ell', 'width_ell']
    >>> [(part.name, part.vars) for part in function.body]
    [('total_init', ('i_1',)), ('total_ell', ('i_ell', 'j_ell'))]
    """
    stored = _stored_buffers(function, buffers)
    axes = {axis.name: axis for axis in function.axes}
    shape = [axes[name].length for name in stored[0].axes]
    namer = namer_of(function)
    parts = []
    for part_format in formats:
        _require_fitting(part_format, rank=len(shape), count=len(stored))
        name, description = part_format
        parts.append(format_part(description, name, shape=shape, stored=stored, namer=namer))
    body: list[Stmt] = []
    if converts:
        for part in parts:
            body += conversions(part, stored, namer)
    for stmt in function.body:
        if not buffers_accessed(stmt) & set(buffers):
            body.append(stmt)
        elif isinstance(stmt, Iteration):
            body += decomposed_iteration(stmt, stored, parts, axes, namer)
        else:
            raise DecompositionError(
                "statement",
                f"{', '.join(buffers)} is used outside of the iterations of the function.",
            )
    extended = replace(
        function,
        params=(*function.params, *(param for part in parts for param in part.params)),
        axes=(*function.axes, *(axis for part in parts for axis in part.axes)),
        buffers=(
            *function.buffers,
            *(buffer for part in parts for buffer in part.buffers),
            *(array for part in parts for array in part.index_arrays),
        ),
        body=tuple(body),
    )
    return extended if converts else without_tensor(extended, stored)


def _stored_buffers(function: Function, names: Sequence[str]) -> list[SparseBuffer]:
    found = {buffer.name: buffer for buffer in function.buffers if isinstance(buffer, SparseBuffer)}
    for name in names:
        if name not in found:
            raise DecompositionError("buffer", f"'{name}' is not a sparse buffer of the function.")
    stored = [found[name] for name in names]
    if not stored or any(buffer.axes != stored[0].axes for buffer in stored):
        raise DecompositionError(
            "axes", f"The buffers {', '.join(names) or '()'} do not share their axes."
        )
    return stored


def _require_fitting(part: PartFormat, *, rank: int, count: int) -> None:
    described = part.format
    results = map_results(described)
    if len(results) != rank:
        raise DecompositionError(
            "rank",
            f"The format of part '{part.name}' has {len(results)} dimensions; expected {rank}.",
        )
    if 1 + len(described.more_buffers) != count:
        raise DecompositionError(
            "count",
            f"The format of part '{part.name}' has {1 + len(described.more_buffers)} buffers of values; "
            f"expected {count}.",
        )
