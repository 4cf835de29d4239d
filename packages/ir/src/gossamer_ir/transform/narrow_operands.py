"""Stores the operands of products in a narrower dtype than that in which the products are added."""

from __future__ import annotations

from collections.abc import Collection

from msgspec.structs import replace

from gossamer_ir.nodes import Module
from gossamer_ir.transform.retype import retype_function


def narrow_operands(module: Module, names: Collection[str], *, dtype: str) -> Module:
    """Return the module with buffers of these names in another dtype. Each element that is loaded from them
    is cast to the dtype that they had.

    >>> from gossamer_ir.script import parse_module, print_module
    >>> module = parse_module('''
    ... @T.prim_func
    ... def products(a: T.handle, x: T.handle, y: T.handle, m: T.int64) -> None:
    ...     I = T.sp.dense_fixed(m)
    ...     J = T.sp.dense_fixed(4)
    ...     A = T.sp.match_buffer(a, (I, J), "float32")
    ...     X = T.sp.match_buffer(x, (J,), "float32")
    ...     Y = T.sp.match_buffer(y, (I,), "float32")
    ...     with T.sp.iteration([I, J], "SR", "products") as [i, j]:
    ...         with T.init():
    ...             Y[i] = 0.0
    ...         Y[i] = Y[i] + A[i, j] * X[j]
    ... ''')
    >>> narrowed = narrow_operands(module, ("A", "X"), dtype="float16")
    >>> print(print_module(narrowed).splitlines()[-1].strip())
    Y[i] = Y[i] + T.float32(A[i, j]) * T.float32(X[j])
    """
    dtypes = dict.fromkeys(names, dtype)
    functions = tuple(
        retype_function(function, dtypes, casts_loads=True) for function in module.functions
    )
    return replace(module, functions=functions)
