"""Multiplies the values of a matrix by a factor: an array of one number, so that one kernel serves all."""

from __future__ import annotations

from functools import partial
from typing import Any

from msgspec.structs import replace

from gossamer_ir.core.build import ONE, ZERO
from gossamer_ir.nodes import Binary, DenseFixed, Expr, Function, Load, Module, Param, SparseBuffer
from gossamer_ir.traversal.rewrite import rewrite_body


def scale_values(module: Module, *, handle: str, factor: str) -> Module:
    """Return the module with another array as a parameter, `factor`, by whose one element each loaded element
    of the buffer with this handle is multiplied. No name of the module may be `factor`, with or without a
    capital, or `One`.

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
    >>> scaled = scale_values(module, handle="a", factor="alpha")
    >>> [param.name for param in scaled.functions[0].params]
    ['a', 'x', 'y', 'alpha', 'm']
    >>> print(print_module(scaled).splitlines()[-1].strip())
    Y[i] = Y[i] + A[i, j] * Alpha[0] * X[j]
    """
    functions = tuple(_scale(function, handle, factor) for function in module.functions)
    return replace(module, functions=functions)


def _scale(function: Function, handle: str, factor: str) -> Function:
    bound = {buffer.handle: buffer for buffer in function.buffers}
    values, name = bound[handle], factor.capitalize()
    # Arrays come before sizes in the parameters of operators.
    arrays = tuple(param for param in function.params if param.name in bound)
    others = tuple(param for param in function.params if param.name not in bound)
    return replace(
        function,
        params=(*arrays, Param(factor, "handle"), *others),
        axes=(*function.axes, DenseFixed("One", ONE)),
        buffers=(SparseBuffer(name, ("One",), values.dtype, factor), *function.buffers),
        body=rewrite_body(
            function.body, partial(_times, values.name, Load(name, (ZERO,), values.dtype))
        ),
    )


def _times(buffer_name: str, factor: Expr, node: Any) -> Expr | None:
    """Return a load of the buffer multiplied by the factor."""
    is_value = isinstance(node, Load) and node.buffer == buffer_name
    return Binary("mul", node, factor) if is_value else None
