"""Stores a sparse tensor in several formats at once, and computes with each part.

The transformation is that of SparseTIR (Ye and others, ASPLOS 2023), with two differences. Elements are
initialized once, before all updates, also those that no part reaches. And a part may have slots without an
element only if these contribute nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from gossamer_ir.analysis.axes.logical_elements import map_results
from gossamer_ir.nodes import Function, Iteration, Relation, SparseBuffer, Stmt
from gossamer_ir.transform.decomposition.decomposed_iterations import (
    DividedTensor,
    conversions,
    decomposed_iteration,
)
from gossamer_ir.transform.decomposition.decomposition_error import DecompositionError
from gossamer_ir.transform.decomposition.instantiated_format import (
    InstantiatedFormat,
    NamedFormat,
    instantiate_format,
    with_fresh_vars,
)
from gossamer_ir.transform.decomposition.remove_tensor import without_tensor
from gossamer_ir.transform.decomposition.rows_of_parts import (
    RowsOf,
    RowsOfParts,
    disjoint_relations,
    none_initialize,
)
from gossamer_ir.traversal.buffer_definitions import sparse_buffers
from gossamer_ir.traversal.buffer_uses import buffers_accessed
from gossamer_ir.traversal.names import Namer, namer_of
from gossamer_support.items_by_name import items_by_name
from gossamer_support.message_texts import amount


def decompose_function(
    function: Function,
    buffers: Sequence[str],
    formats: Sequence[NamedFormat],
    *,
    converts: bool = False,
    rows: RowsOf = none_initialize,
) -> Function:
    """Return the function with sparse buffers, which share their axes, stored in parts.

    Each iteration that uses the buffers is replaced by one for each part. The first part that is
    proved to visit all elements outside of the buffers which it initializes does so; otherwise an iteration
    of its own does it before. The parts then accumulate, except those that `rows` declares to initialize what
    they visit. The parameters of the undivided tensor are removed, unless the function `converts`: then an
    iteration for each part and buffer copies the elements. Together, the parts must hold each element once,
    and what is declared of their rows must be true; neither is checked here.

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
    >>> function = decompose_function(module.functions[0], ["A"], [NamedFormat("ell", ell)])
    >>> [param.name for param in function.params]
    ['y', 'm', 'n', 'data_ell', 'indices_ell', 'width_ell']
    >>> [(part.name, part.vars) for part in function.body]
    [('total_ell', ('i_ell', 'j_ell'))]
    """
    stored = _stored_buffers(function, buffers)
    instantiated = _instantiate_formats(function, stored, formats, namer := namer_of(function))
    relations: dict[Relation, None] = {}

    def recorded_rows(dimension: int) -> RowsOfParts:
        rows_of_parts = rows(dimension)
        pairs = rows_of_parts.disjoint
        relations.update(dict.fromkeys(disjoint_relations(instantiated, pairs, dimension)))
        return rows_of_parts

    body: list[Stmt] = []
    # Before the updates, which read the copies.
    if converts:
        for format in instantiated:
            body += conversions(format, stored, namer)
    body += _decomposed_body(instantiated, DividedTensor(function, stored, namer, recorded_rows))
    extended = _with_declarations(replace(function, body=tuple(body)), instantiated)
    extended = replace(extended, relations=(*extended.relations, *relations))
    return extended if converts else without_tensor(extended, stored)


def _decomposed_body(formats: Sequence[InstantiatedFormat], tensor: DividedTensor) -> list[Stmt]:
    """Return the body of the function with an iteration for each part instead of those over the tensor."""
    body: list[Stmt] = []
    for stmt in tensor.function.body:
        replaced = _decompose_stmt(stmt, formats, tensor)
        body += replaced
        if replaced != [stmt]:
            # Variables are unique in a function, so the next iteration needs others.
            formats = [with_fresh_vars(format, tensor.namer) for format in formats]
    return body


def _instantiate_formats(
    function: Function,
    stored: Sequence[SparseBuffer],
    formats: Sequence[NamedFormat],
    namer: Namer,
) -> list[InstantiatedFormat]:
    """Return the formats with their declarations in names of the function."""
    lengths = {axis.name: axis.length for axis in function.axes}
    shape = [lengths[name] for name in stored[0].axes]
    for format in formats:
        _require_fitting(format, ndim=len(shape), count=len(stored))
    return [
        instantiate_format(format, shape=shape, stored=stored, namer=namer) for format in formats
    ]


def _decompose_stmt(
    stmt: Stmt, formats: Sequence[InstantiatedFormat], tensor: DividedTensor
) -> list[Stmt]:
    """Return a statement of the function's body, or those that replace it if it uses the tensor."""
    names = tensor.names
    if not buffers_accessed(stmt) & names:
        return [stmt]
    if not isinstance(stmt, Iteration):
        raise DecompositionError(
            "statement",
            f"{', '.join(sorted(names))} is used outside of the iterations of the function.",
        )
    return decomposed_iteration(stmt, formats, tensor)


def _with_declarations(function: Function, formats: Sequence[InstantiatedFormat]) -> Function:
    """Return the function with the parameters, axes and buffers of the formats."""
    return replace(
        function,
        params=(*function.params, *(param for format in formats for param in format.params)),
        axes=(*function.axes, *(axis for format in formats for axis in format.axes)),
        buffers=(
            *function.buffers,
            *(buffer for format in formats for buffer in format.buffers),
            *(array for format in formats for array in format.index_arrays),
        ),
        facts=(*function.facts, *(fact for format in formats for fact in format.facts)),
    )


def _stored_buffers(function: Function, names: Sequence[str]) -> list[SparseBuffer]:
    by_name = items_by_name(sparse_buffers(function.buffers))
    for name in names:
        if name not in by_name:
            raise DecompositionError("buffer", f"'{name}' is not a sparse buffer of the function.")
    stored = [by_name[name] for name in names]
    if not stored or any(buffer.axes != stored[0].axes for buffer in stored):
        raise DecompositionError(
            "axes", f"The buffers {', '.join(names) or '()'} do not share their axes."
        )
    return stored


def _require_fitting(format: NamedFormat, *, ndim: int, count: int) -> None:
    described = format.description
    results = map_results(described)
    if len(results) != ndim:
        raise DecompositionError(
            "dimensions",
            f"The format of part '{format.name}' has {amount(len(results), 'dimension')}; expected {ndim}.",
        )
    if 1 + len(described.more_buffers) != count:
        raise DecompositionError(
            "count",
            f"The format of part '{format.name}' has "
            f"{amount(1 + len(described.more_buffers), 'buffer')} of values; expected {count}.",
        )
