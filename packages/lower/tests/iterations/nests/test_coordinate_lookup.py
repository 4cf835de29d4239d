"""Coordinate look-ups: equal searches are merged, and loop-invariant ones are hoisted."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer_ir.interpret import GuardFailed, run
from gossamer_ir.nodes import For, Guard, Search
from gossamer_ir.script import parse_module, print_module
from gossamer_ir.traversal.walk import walk
from gossamer_lower import FLAT_PASSES, hoist_searches, lower_buffers, lower_iterations

HEADER = """
@T.prim_func
def program(a: T.handle, b: T.handle, c: T.handle, p: T.handle, q: T.handle, pc: T.handle,
            qc: T.handle, m: T.int64, n: T.int64, nnz: T.int64, stored: T.int64,
            count: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (p, q))
    O = T.sp.dense_fixed(1)
    R = T.sp.compressed_varied(O, (m, stored), (pc, qc))
    D = T.sp.dense_fixed(n)
    K = T.sp.dense_fixed(count)
    A = T.sp.match_buffer(a, (I, J), "float32")
    B = T.sp.match_buffer(b, (I, D, K), "float32")
    C = T.sp.match_buffer(c, (O, R), "float32")
"""
OVER_ALL = 'with T.sp.iteration([I, D, K], "SSS", "x") as [i, d, k]:'


def hoisted(body):
    """The body at the loop stage, after `hoist_searches`."""
    module = lower_buffers(lower_iterations(parse_module(HEADER + body)))
    for lower in FLAT_PASSES[: FLAT_PASSES.index(hoist_searches) + 1]:
        module = lower(module)
    return module.functions[0].body


def searches(body):
    """The number of enclosing loops of each search."""
    searched = []

    def visit(node, depth):
        if isinstance(node, Search):
            searched.append(depth)
        for stmt in getattr(node, "body", ()) if isinstance(node, For) else ():
            visit(stmt, depth + 1)
        if not isinstance(node, For):
            searched.extend(depth for inner in walk(node) if isinstance(inner, Search))

    for stmt in body:
        visit(stmt, 0)
    return searched


@pytest.mark.parametrize(
    ("body", "depths"),
    [
        ("        B[i, d, k] = A[i, d]", [2]),
        ("        B[i, d, k] = A[i, d] * A[i, d] + A[i, d]", [2]),
        ("        B[i, d, k] = A[i, d] * A[i, d + 1]", [2, 2]),
        ("        B[i, d, k] = A[i, d] + C[0, i]", [1, 2]),
        ("        B[i, d, k] = A[i, d] + 1.0\n        A[i, d] = A[i, d] + B[i, d, k]", [2]),
        ("        if B[i, d, k] > 0.0:\n            A[i, d] = A[i, d] + 1.0", [3]),
        ("        B[i, d, k] = A[i, k]", [3]),
        ("        B[i, d, k] = A[0, 3]", [0]),
    ],
)
def test_each_coordinate_is_looked_up_once_as_far_outside_as_it_is_known(body, depths):
    assert sorted(searches(hoisted(f"    {OVER_ALL}\n{body}\n"))) == depths


def test_a_lookup_behind_a_guard_is_the_one_of_the_guard():
    body = hoisted("""
    with T.sp.iteration([I], "S", "x") as [i]:
        C[0, i] = C[0, i] * 2.0
""")
    assert searches(body) == [1]
    assert sum(isinstance(node, Guard) for stmt in body for node in walk(stmt)) == 1


NESTED = """
@T.prim_func
def program(a: T.handle, y: T.handle, p: T.handle, q: T.handle, pj: T.handle, qj: T.handle,
            m: T.int64, n: T.int64, stored: T.int64, nnz: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    O = T.sp.dense_fixed(1)
    R = T.sp.compressed_varied(O, (m, stored), (p, q))
    J = T.sp.compressed_varied(R, (n, nnz), (pj, qj))
    A = T.sp.match_buffer(a, (O, R, J), "float32")
    M = T.sp.dense_fixed(m)
    D = T.sp.dense_fixed(n)
    Y = T.sp.match_buffer(y, (M, D), "float32")
    with T.sp.iteration([M, D], "SS", "x") as [i, d]:
        A[0, i, d] = Y[i, d]
"""


@pytest.mark.parametrize("stage", range(4))
def test_the_guard_of_a_store_names_its_buffer_at_each_level(stage):
    module = parse_module(NESTED)
    stages = [module, lower_iterations(module)]
    stages.append(lower_buffers(stages[-1]))
    flat = stages[-1]
    for lower in FLAT_PASSES:
        flat = lower(flat)
    stages.append(flat)
    y = np.ones((2, 3), np.float32)
    arguments = {
        "y": y, "m": 2, "n": 3, "p": np.array([0, 2], np.int32), "stored": 2,
        "pj": np.array([0, 3, 6], np.int32), "qj": np.array([0, 1, 2, 0, 1, 2], np.int32), "nnz": 6,
        "q": np.array([0, 1], np.int32), "a": np.zeros(6, np.float32),
    }  # fmt: skip
    run(stages[stage], arguments)
    assert (arguments["a"] == 1).all()
    arguments |= {"m": 2, "q": np.array([0, 1], np.int32), "pj": np.array([0, 3, 5], np.int32),
                  "qj": np.array([0, 1, 2, 0, 2], np.int32), "nnz": 5,
                  "a": np.zeros(5, np.float32)}  # fmt: skip
    with pytest.raises(GuardFailed) as caught:
        run(stages[stage], arguments)
    assert caught.value.buffer in ("A", "A_data")
    arguments |= {"stored": 1, "p": np.array([0, 1], np.int32), "q": np.array([1], np.int32),
                  "pj": np.array([0, 3], np.int32), "qj": np.array([0, 1, 2], np.int32), "nnz": 3,
                  "a": np.zeros(3, np.float32)}  # fmt: skip
    with pytest.raises(GuardFailed) as caught:
        run(stages[stage], arguments)
    assert caught.value.buffer in ("A", "A_data")


ATTACHED = """
@T.prim_func
def main(y: T.handle, indptr: T.handle, n: T.int64, m: T.int64, nnz: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(n)
    L = T.sp.dense_fixed(LENGTH)
    M = T.sp.dense_varied(L, (9, nnz), indptr)
    Y = T.sp.match_buffer(y, (I,), "int32")
    with T.sp.iteration([I, T.sp.attach(M, I)], "SR", "step") as [i, k]:
        with T.init():
            Y[i] = 0
        Y[i] = Y[i] + 1
"""


@pytest.mark.parametrize(
    ("length", "extent"),
    [
        ("n", "T.int64(M_indptr[i + 1]) - T.int64(M_indptr[i])"),
        ("m", "T.if_then_else(i < m, T.int64(M_indptr[i + 1]) - T.int64(M_indptr[i]), 0)"),
    ],
)
def test_a_coordinate_is_compared_with_the_length_of_another_parent_only(length, extent):
    module = lower_iterations(parse_module(ATTACHED.replace("LENGTH", length)))
    assert f"for k in T.serial({extent}):" in print_module(module)
    offsets = np.array([0, 2, 2, 5], np.int32)
    y = np.full(4 if length == "m" else 3, 7, np.int32)
    run(module, {"y": y, "indptr": offsets, "n": len(y), "m": 3, "nnz": 5})
    assert y.tolist() == [2, 0, 3, 0][: len(y)]
