"""A new type of axis is lowered by its entry in the table of axes."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from gossamer_ir.core.axis_kinds import AXIS_KINDS, AxisKind
from gossamer_ir.core.build import ONE
from gossamer_ir.nodes import Expr, Name, Node
from gossamer_ir.script import parse_module
from gossamer_lower import lower_buffers, lower_iterations

PROGRAM = """
@T.prim_func
def f(a: T.handle, x: T.handle, y: T.handle, q: T.handle, m: T.int64, n: T.int64):
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_fixed(I, (n, 1), q, padded=False)
    K = T.sp.dense_fixed(n)
    A = T.sp.match_buffer(a, (I, J), "float32")
    X = T.sp.match_buffer(x, (K,), "float32")
    Y = T.sp.match_buffer(y, (I,), "float32")
"""
BODIES = {
    "iterated": """
    with T.sp.iteration([I, J], "SR", "it") as [i, j]:
        with T.init():
            Y[i] = 0.0
        Y[i] += A[i, j] * X[j]
""",
    "searched": """
    with T.sp.iteration([I, K], "SR", "it") as [i, k]:
        with T.init():
            Y[i] = 0.0
        Y[i] += A[i, k] * X[k]
""",
    "fused": """
    with T.sp.iteration([T.sp.fuse(I, J)], "SR", "it") as [i, j]:
        with T.init():
            Y[i] = 0.0
        Y[i] += A[i, j] * X[j]
""",
}


class Singleton(Node, frozen=True):
    """A type of axis that the language lacks: one coordinate for each element of the parent."""

    name: Name
    parent: Name
    length: Expr
    indices: Name
    indices_dtype: str = "int32"
    sorted: bool = True
    unique: bool = True
    padded: bool = False


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_a_new_axis_is_lowered_as_a_compressed_axis_of_width_1(monkeypatch, body):
    monkeypatch.setitem(AXIS_KINDS, Singleton, AxisKind(lambda axis: ONE, has_indices=True))
    module = parse_module(PROGRAM + body)
    (function,) = module.functions
    above, axis, columns = function.axes
    axes = (above, Singleton(axis.name, axis.parent, axis.length, axis.indices), columns)
    new = replace(module, functions=(replace(function, axes=axes),))
    assert lower_buffers(lower_iterations(new)) == lower_buffers(lower_iterations(module))
