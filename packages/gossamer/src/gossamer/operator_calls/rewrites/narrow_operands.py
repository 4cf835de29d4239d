"""Stores the operands of products in a narrower dtype than that in which the products are added."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import Any

from msgspec.structs import replace

from gossamer_ir.nodes import Cast, Expr, Function, Load, Module
from gossamer_ir.traversal.rewrite import rewrite_body


def narrow_operands(module: Module, names: Collection[str], *, dtype: str) -> Module:
    """Return the module with buffers of these names in another dtype. Each element that is loaded from them
    is cast to the dtype that they had.

    >>> from gossamer.operator_calls.operator_program import Variant, module_of
    >>> from gossamer.operators.spmv import PROGRAM
    >>> from gossamer_testkit.show import body_text
    >>> print(body_text(narrow_operands(module_of(PROGRAM, Variant()), ("A", "X"), dtype="float16")))
    with T.sp.iteration([I, J], "SR", "csrmv") as [i, j]:
        with T.init():
            Y[i] = 0.0
        Y[i] = Y[i] + T.float32(A[i, j]) * T.float32(X[j])
    """
    functions = tuple(_narrow(function, names, dtype) for function in module.functions)
    return replace(module, functions=functions)


def _narrow(function: Function, names: Collection[str], dtype: str) -> Function:
    buffers = tuple(
        replace(buffer, dtype=dtype) if buffer.name in names else buffer
        for buffer in function.buffers
    )
    body = rewrite_body(function.body, partial(_cast_load, names, dtype))
    return replace(function, buffers=buffers, body=body)


def _cast_load(names: Collection[str], dtype: str, node: Any) -> Expr | None:
    """Return a load from a buffer that is narrowed, cast to the dtype that it had."""
    is_narrowed = isinstance(node, Load) and node.buffer in names
    return Cast(node.dtype, replace(node, dtype=dtype)) if is_narrowed else None
