"""Multiplies the values of a matrix by a factor: an array of one number, so that one kernel serves all."""

from __future__ import annotations

from functools import partial
from typing import Any

from msgspec.structs import replace

from gossamer_ir.core.build import ONE, ZERO
from gossamer_ir.nodes import (
    Binary,
    DenseFixed,
    Expr,
    Function,
    Load,
    Module,
    Param,
    SparseBuffer,
)
from gossamer_ir.traversal.rewrite import rewrite_body


def scale_values(module: Module, *, handle: str, factor: str) -> Module:
    """Return the module with another array as a parameter, `factor`, by whose one element each loaded element
    of the buffer with this handle is multiplied. No name of the module may be `factor`, with or without a
    capital, or `One`.

    >>> from gossamer.operator_calls.program import Variant, module_of
    >>> from gossamer.operators.spmv import PROGRAM
    >>> from gossamer_ir.script import print_module
    >>> module = module_of(PROGRAM, Variant())
    >>> print(print_module(scale_values(module, handle="a", factor="alpha")).rstrip())
    @T.prim_func
    def csrmv(
        a: T.handle,
        x: T.handle,
        y: T.handle,
        alpha: T.handle,
        indptr: T.handle,
        indices: T.handle,
        m: T.int64,
        n: T.int64,
        nnz: T.int64,
    ) -> None:
        T.func_attr({"sparse_tir_level": 2, "global_symbol": "csrmv", "tir.noalias": True})
        I = T.sp.dense_fixed(m)
        J = T.sp.compressed_varied(I, (n, nnz), (indptr, indices), "int32", sorted=False, unique=False)
        J_detach = T.sp.dense_fixed(n)
        One = T.sp.dense_fixed(1)
        Alpha = T.sp.match_buffer(alpha, (One,), "float32")
        A = T.sp.match_buffer(a, (I, J), "float32")
        X = T.sp.match_buffer(x, (J_detach,), "float32")
        Y = T.sp.match_buffer(y, (I,), "float32")
        with T.sp.iteration([I, J], "SR", "csrmv") as [i, j]:
            with T.init():
                Y[i] = 0.0
            Y[i] = Y[i] + A[i, j] * Alpha[0] * X[j]
    """
    functions = tuple(_scaled(function, handle, factor) for function in module.functions)
    return replace(module, functions=functions)


def _scaled(function: Function, handle: str, factor: str) -> Function:
    bound = {buffer.handle: buffer for buffer in function.buffers}
    values, name = bound[handle], factor.capitalize()
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


def _times(buffer: str, factor: Expr, node: Any) -> Expr | None:
    """Return a load of the buffer multiplied by the factor."""
    is_value = isinstance(node, Load) and node.buffer == buffer
    return Binary("mul", node, factor) if is_value else None
