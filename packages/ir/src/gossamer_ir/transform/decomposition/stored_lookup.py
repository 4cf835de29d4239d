"""Stores a buffer in a format in which its elements are looked up by their coordinates."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from gossamer_ir.core.build import index_var
from gossamer_ir.nodes import Function, Node
from gossamer_ir.transform.decomposition.decomposition_error import DecompositionError
from gossamer_ir.transform.decomposition.instantiated_format import NamedFormat, instantiate_format
from gossamer_ir.transform.decomposition.remove_tensor import without_tensor
from gossamer_ir.traversal.access_types import ACCESSES
from gossamer_ir.traversal.buffer_definitions import sparse_buffers
from gossamer_ir.traversal.names import namer_of
from gossamer_ir.traversal.rewrite import rewrite_body
from gossamer_support.items_by_name import items_by_name


def with_lookup(function: Function, buffer_name: str, format: NamedFormat) -> Function:
    """Return the function with a buffer over dense axes stored in a format, by whose axes its elements are
    looked up: an element that is not stored reads the fill value.

    Raises `DecompositionError` (`lookup`) for a format whose coordinates are not those of its axes, such as
    blocks.

    >>> from gossamer_ir.script import parse_format, parse_module
    >>> module = parse_module('''
    ... @T.prim_func
    ... def diagonal(a: T.handle, y: T.handle, n: T.int64) -> None:
    ...     I = T.sp.dense_fixed(n)
    ...     J = T.sp.dense_fixed(n)
    ...     A = T.sp.match_buffer(a, (I, J), "float32")
    ...     Y = T.sp.match_buffer(y, (I,), "float32")
    ...     with T.sp.iteration([I], "S", "diagonal") as [i]:
    ...         Y[i] = A[i, i]
    ... ''')
    >>> ell = parse_format('''
    ... @T.format
    ... def ell(data: T.handle, indices: T.handle, m: T.int64, n: T.int64, width: T.int64) -> None:
    ...     I = T.sp.dense_fixed(m)
    ...     J = T.sp.compressed_fixed(I, (n, width), indices, "int32")
    ...     A = T.sp.match_buffer(data, (I, J), "float32")
    ... ''')
    >>> function = with_lookup(module.functions[0], "A", NamedFormat("ell", ell))
    >>> [param.name for param in function.params]
    ['y', 'n', 'data_ell', 'indices_ell', 'width_ell']
    """
    buffer = items_by_name(sparse_buffers(function.buffers))[buffer_name]
    axes = items_by_name(function.axes)
    stored = instantiate_format(
        format,
        shape=[axes[name].length for name in buffer.axes],
        stored=[buffer],
        namer=namer_of(function),
    )
    if stored.coordinates != tuple(index_var(name) for name in stored.vars):
        raise DecompositionError(
            "lookup",
            f"The coordinates of the format '{format.description.name}' are not those of its axes, so that "
            f"elements of '{buffer_name}' cannot be looked up.",
        )
    (values,) = stored.buffers

    def retarget_access(node: Node) -> Any | None:
        if isinstance(node, ACCESSES) and node.buffer == buffer_name:
            return replace(node, buffer=values.name)
        return None

    extended = replace(
        function,
        params=(*function.params, *stored.params),
        axes=(*function.axes, *stored.axes),
        buffers=(*function.buffers, *stored.buffers, *stored.index_arrays),
        facts=(*function.facts, *stored.facts),
        body=rewrite_body(function.body, retarget_access),
    )
    return without_tensor(extended, [buffer])
