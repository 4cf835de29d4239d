"""Errors that no test of a package raises, because what comes before refuses the program already, or
because they take the whole of gossamer."""

from __future__ import annotations

import pytest

import gossamer as gs
from gossamer_ir.build import index_var
from gossamer_ir.constants import constant
from gossamer_ir.errors import ArgumentError, UnsupportedError
from gossamer_ir.nodes import (
    DenseFixed,
    DenseVaried,
    Function,
    Module,
    Param,
    SparseBuffer,
)
from gossamer_lower.examples import program
from gossamer_lower.lower_buffers import lower_buffers
from gossamer_lower.pipeline import lower_to_flat
from gossamer_testkit import script

SCALE = """
@T.prim_func
def scale(x: T.handle, n: T.int64) -> None:
    X = T.match_buffer(x, (n,), "float32")
    for i in T.serial(n):
        X[i] = X[i] * 2.0
"""


def test_a_parallel_loop_inside_another():
    module = program("for i in T.parallel(n):\n    for j in T.parallel(n): Y[i] = X[j]")
    with pytest.raises(UnsupportedError) as caught:
        lower_to_flat(module)
    assert caught.value.code == "lower.nested_parallel"


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
    assert caught.value.code == "lower.storage"


def test_a_target_that_this_machine_is_not():
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


def test_a_script_that_there_is_not():
    with pytest.raises(ArgumentError) as caught:
        script("nothing")
    assert caught.value.code == "scripts.unknown"
