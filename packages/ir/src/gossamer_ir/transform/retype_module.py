"""Changes the dtypes of all values and of all index arrays of a program."""

from __future__ import annotations

from gossamer_ir.core.axis_kinds import index_handles
from gossamer_ir.core.dtypes import DType
from gossamer_ir.nodes import Module
from gossamer_ir.transform.specialize import specialize
from gossamer_support.typed_calls import typed


@typed
def retype_module(module: Module, *, dtype: str, index_dtype: str) -> Module:
    """Return a module of one function with `dtype` for its float buffers, and `index_dtype` for the index
    arrays of its axes.

    Raises `ArgumentError` (`specialize.dtype`) for an invalid dtype, or one that another operand contradicts.

    >>> from gossamer_ir.script import parse_module
    >>> module = parse_module('''
    ... @T.prim_func
    ... def rows(x: T.handle, indptr: T.handle, indices: T.handle, m: T.int64, n: T.int64) -> None:
    ...     I = T.dense_fixed(m)
    ...     J = T.sparse_variable(I, (n, m), (indptr, indices), "int32")
    ...     X = T.match_sparse_buffer(x, (I, J), "float32")
    ... ''')
    >>> module = retype_module(module, dtype="float64", index_dtype="int64")
    >>> module.functions[0].buffers[0].dtype, module.functions[0].axes[1].indices_dtype
    ('float64', 'int64')
    """
    (function,) = module.functions
    floats = [buffer.name for buffer in function.buffers if DType.parse(buffer.dtype).is_float]
    stored = [axis.name for axis in function.axes if index_handles(axis)]
    dtypes = dict.fromkeys(floats, dtype) | dict.fromkeys(stored, index_dtype)
    return specialize(module, {}, dtypes=dtypes)
