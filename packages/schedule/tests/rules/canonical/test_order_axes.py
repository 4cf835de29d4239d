"""Rules recognize a pattern for every order of its axes."""

import pytest

from gossamer_ir import parse_module
from gossamer_ir.interchange.records import Schedule
from gossamer_machine import Machine
from gossamer_schedule import replay
from gossamer_schedule.rules import default_schedule

WIDE = Machine()
PROGRAM = """
@T.prim_func
def product(a: T.handle, b: T.handle, c: T.handle, p: T.handle, q: T.handle,
            m: T.int64, n: T.int64, nnz: T.int64) -> None:
    T.func_attr({{"sparse_tir_level": 2}})
    R = T.sp.dense_fixed(m)
    Q = T.sp.compressed_varied(R, (n, nnz), (p, q), "int32")
    N = T.sp.dense_fixed(n)
    F = T.sp.dense_fixed(40)
    A = T.sp.match_buffer(a, ({left}), "float32")
    B = T.sp.match_buffer(b, (N, F), "float32")
    C = T.sp.match_buffer(c, ({out}), "float32")
    with T.sp.iteration([{axes}], "{kinds}", "product") as [{names}]:
        with T.init():
            C[{element}] = 0.0
        C[{element}] = C[{element}] + A[{term}] * B[w, t]
"""
SPMM = {"left": "R, Q", "out": "R, F", "element": "u, t", "term": "u, w"}
SDDMM = {"left": "R, F", "out": "R, Q", "element": "u, w", "term": "u, t"}
PRODUCTS = {"spmm": (SPMM, "w"), "sddmm": (SDDMM, "t")}
VARS = {"R": "u", "Q": "w", "F": "t"}
ORDERS = ["RQF", "RFQ", "FRQ"]


def product(name, order, *, fused=False):
    parts, reduced = PRODUCTS[name]
    names = [VARS[axis] for axis in order]
    axes = ", ".join(order)
    return parse_module(
        PROGRAM.format(
            axes=axes.replace("R, Q", "T.sp.fuse(R, Q)") if fused else axes,
            kinds="".join("R" if var == reduced else "S" for var in names),
            names=", ".join(names),
            **parts,
        )
    )


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", PRODUCTS)
def test_the_order_of_axes_does_not_matter(name, order):
    module = product(name, order)
    expected, schedule = (
        default_schedule(product(name, "RQF"), WIDE),
        default_schedule(module, WIDE),
    )
    assert expected != Schedule()
    assert schedule.loop == expected.loop
    assert replay(module, schedule.coordinate) == product(name, "RQF")


def test_fused_axes_behind_others_are_found():
    schedule = default_schedule(product("spmm", "FRQ", fused=True), WIDE)
    assert [step.op for step in schedule.coordinate] == ["sparse_unfuse", "sparse_reorder"]
    assert schedule.loop == default_schedule(product("spmm", "RQF"), WIDE).loop


def test_nothing_is_reordered_where_the_order_matters():
    text = PROGRAM.format(axes="F, R, Q", kinds="SSR", names="t, u, w", **SPMM)
    module = parse_module(text.replace("B[w, t]", "C[u, 0]"))
    assert default_schedule(module, WIDE) == Schedule()
