"""Errors that no test of a single package raises: an earlier check rejects the program, or they need
several packages.
"""

from __future__ import annotations

import numpy as np
import pytest

import gossamer as gs
from gossamer_formats.checks.storage_checks import require_valid_storage
from gossamer_formats.storage import Storage
from gossamer_ir.core.build import index_var
from gossamer_ir.core.constants import constant
from gossamer_ir.errors import ArgumentError, UnsupportedError
from gossamer_ir.nodes import DenseFixed, DenseVaried, Function, Module, Param, SparseBuffer
from gossamer_ir.script import parse_format
from gossamer_lower.buffers.lower_buffers import lower_buffers
from gossamer_testkit import script

SCALE = """
@T.prim_func
def scale(x: T.handle, n: T.int64) -> None:
    X = T.match_buffer(x, (n,), "float32")
    for i in T.serial(n):
        X[i] = X[i] * 2.0
"""


def test_axes_side_by_side_without_offsets():
    n = index_var("n")
    axes = (
        DenseFixed("I", n),
        DenseVaried("J", "I", n, n, "p"),
        DenseVaried("K", "I", n, n, "q"),
    )
    params = (*(Param(name, "handle") for name in "pqx"), Param("n", "int64"))
    buffer = SparseBuffer("X", ("I", "J", "K"), "float32", handle="x")
    module = Module("position", (Function("f", params, (), axes=axes, buffers=(buffer,)),), "f")
    with pytest.raises(UnsupportedError) as caught:
        lower_buffers(module)
    assert caught.value.code == "lower.lower_buffers.missing_offsets"


def test_a_target_of_another_machine():
    with pytest.raises(ArgumentError) as caught:
        gs.compile(SCALE, target="generic-cpu:cpu=none-such")
    assert caught.value.code == "target.unusable"


def test_a_weight_of_many_values():
    names = [f"n{number}" for number in range(70)]
    params = ", ".join(f"{name}: T.int64" for name in names)
    script = SCALE.replace("n: T.int64", f"n: T.int64, {params}").replace(
        "T.serial(n)", f"T.parallel(n, weight=i + {' + '.join(names)}, grain=1)"
    )
    with pytest.raises(UnsupportedError) as caught:
        gs.compile(script)
    assert caught.value.code == "llvm.weight"


def test_a_constant_of_lanes():
    with pytest.raises(ArgumentError) as caught:
        constant(1, "float32x2")
    assert caught.value.code == "constant.dtype"


def test_a_script_that_does_not_exist():
    with pytest.raises(ArgumentError) as caught:
        script("nothing")
    assert caught.value.code == "scripts.unknown"


SQUARES = """
@T.prim_func
def squares(x: T.handle, n: T.int64) -> None:
    X = T.match_buffer(x, (n,), "float32")
    for i in T.serial(n):
        X[i] = X[i] * X[i]
"""


def test_a_scalar_of_a_dtype_that_is_not_passed():
    with pytest.raises(UnsupportedError) as caught:
        gs.compile(SQUARES.replace("n: T.int64", "n: T.int64, s: T.float16"))
    assert caught.value.code == "backend.scalar_dtype"


def test_a_size_that_no_caller_can_be_asked_for():
    program = SQUARES.replace("(n,)", "(n << 1,)")
    with pytest.raises(UnsupportedError) as caught:
        gs.compile(program)(x=np.zeros(6, np.float32), n=3)
    assert caught.value.code == "backend.size"


def test_a_relation_that_cannot_be_checked():
    program = """
@T.prim_func
def marked(x: T.handle, p: T.handle, q: T.handle, n: T.int64) -> None:
    X = T.match_buffer(x, (n,), "float32")
    P = T.match_buffer(p, (n,), "int32")
    Q = T.match_buffer(q, (n,), "int32")
    T.assume(covers(P, Q))
    for i in T.serial(n):
        X[T.int64(P[i])] = 1.0
"""
    indices = np.zeros(3, np.int32)
    with pytest.raises(UnsupportedError) as caught:
        gs.compile(program)(np.zeros(3, np.float32), indices, indices)
    assert caught.value.code == "backend.relation"


def test_a_size_of_a_format_that_is_not_arithmetic():
    description = parse_format("""
@T.format
def vector(a: T.handle, m: T.int64) -> None:
    I = T.sp.dense_fixed(m << 1)
    A = T.sp.match_buffer(a, (I,), "float32")
""")
    with pytest.raises(UnsupportedError) as caught:
        require_valid_storage(Storage(description, {"m": 3}, {"a": np.zeros(3, np.float32)}))
    assert caught.value.code == "format.size"
