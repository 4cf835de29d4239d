"""The hint of a store that its elements will not be read soon is kept by every stage."""

from __future__ import annotations

import pytest

from gossamer_ir.script import parse_module, print_module
from gossamer_lower import lower_buffers, lower_iterations, lower_math, lower_to_flat

COORDINATE = """
@T.prim_func
def scale(x: T.handle, y: T.handle, n: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(n)
    X = T.sp.match_buffer(x, (I,), "float32")
    Y = T.sp.match_buffer(y, (I,), "float32")
    with T.sp.iteration([I], "S", "scale") as [i]:
        T.store(Y, i, value=T.exp(X[i]), nontemporal=True)
"""
LOOP = """
@T.prim_func
def scale(x: T.handle, y: T.handle, n: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    X = T.match_buffer(x, (n,), "float32")
    Y = T.match_buffer(y, (n,), "float32")
    for i in T.parallel(n // 16 + 1):
        for lane in T.vectorized(16):
            with T.block("scale"):
                vi = T.axis.spatial(n, i * 16 + lane)
                T.where(vi < n)
                T.store(Y, vi, value=X[vi] * 2.0, nontemporal=True)
"""


@pytest.mark.parametrize("text", [COORDINATE, LOOP], ids=["coordinate", "loop"])
def test_the_hint_is_kept_down_to_the_flat_stage(text):
    module = parse_module(text)
    if module.stage == "coordinate":
        module = lower_buffers(lower_iterations(module))
    flat = print_module(lower_math(lower_to_flat(module), instructions=()))
    stores = [line for line in flat.splitlines() if "T.store(Y" in line]
    assert stores
    assert all("nontemporal=True" in line for line in stores)
    assert "Y[" not in flat
