"""The rule for several iterations on grids of threads: which loops are threads, and what one launch has.
Results are compared in `tests/integration/test_gpu_graphs.py`."""

from __future__ import annotations

import pytest
from rule_programs import CSR, SUM, module_of

from gossamer_ir.script import parse_module
from gossamer_machine import Grid, Machine
from gossamer_schedule.rules import default_schedule, schedule_report
from gossamer_schedule.rules.library.grid_iterations import grid_iterations
from gossamer_schedule.rules.schedule_rule import RuleContext

GPU = Machine(grid=Grid(warp=32, block_threads=1024, shared_memory=49152, multiprocessors=108))
BUCKET = """
    I{0} = T.sp.compressed_fixed(O, (m, s{0}), r{0}, "int32"{distinct}, padded=False)
    J{0} = T.sp.compressed_fixed(I{0}, (n, {width}), q{0}, "int32")
    A{0} = T.sp.match_buffer(a{0}, (O, I{0}, J{0}), "float32")
"""
SUM_OF_BUCKET = """
    with T.sp.iteration([O, I{0}, J{0}{K}], "SSR{S}", "b{0}") as [o{0}, i{0}, j{0}{k}]:{init}
        C[i{0}{k}] = C[i{0}{k}] + A{0}[o{0}, i{0}, j{0}] * B[j{0}{k}]
"""


def in_buckets(*widths, init=(), repeated=(), disjoint=(), features="K = T.sp.dense_fixed(f)"):
    """The sums over buckets, by their numbers: those that initialize rows or have some several times, and
    the pairs without common rows."""
    numbers = range(len(widths))
    params = "".join(
        f", r{b}: T.handle, q{b}: T.handle, a{b}: T.handle, s{b}: T.int64" for b in numbers
    )
    axes, sums = "", ""
    for b, width in enumerate(widths):
        k = f", k{b}" if features else ""
        axes += BUCKET.format(b, width=width, distinct=", unique=False" if b in repeated else "")
        start = f"\n        with T.init():\n            C[i{b}{k}] = 0.0" if b in init else ""
        sums += SUM_OF_BUCKET.format(b, k=k, K=k and ", K", S=k and "S", init=start)
    facts = "".join(f"    T.sp.assume(disjoint(I{a}, I{b}))\n" for a, b in disjoint)
    features_axis = ", K" if features else ""
    return parse_module(
        f"""
@T.prim_func
def hyb(b: T.handle, c: T.handle, m: T.int64, n: T.int64, f: T.int64{params}) -> None:
    T.func_attr({{"sparse_tir_level": 2}})
    I = T.sp.dense_fixed(m)
    N = T.sp.dense_fixed(n)
    {features}
    O = T.sp.dense_fixed(1)
{axes}
    B = T.sp.match_buffer(b, (N{features_axis}), "float32")
    C = T.sp.match_buffer(c, (I{features_axis}), "float32")
{facts}{sums}""".replace("(N)", "(N,)").replace("(I)", "(I,)")
    )


def steps(module, op):
    return [step.args for step in default_schedule(module, GPU).loop if step.op == op]


def atomic_loops(module):
    return {args["loop"] for args in steps(module, "bind") if args.get("accumulate")}


def test_buckets_without_common_rows_are_one_launch_without_atomics():
    module = in_buckets(1, 4, init=(0, 1), disjoint=[(0, 1)])
    assert steps(module, "horizontal_fuse") == [{"loops": ("i0_0", "i1_0")}]
    assert atomic_loops(module) == set()


def test_rows_that_are_stored_several_times_are_updated_atomically():
    module = in_buckets(1, 4, init=(0,), repeated=(1,), disjoint=[(0, 1)])
    assert [len(args["loops"]) for args in steps(module, "horizontal_fuse")] == [2]
    assert atomic_loops(module) == {"i1_0", "i1_2"}


def test_buckets_with_common_rows_are_updated_atomically():
    module = in_buckets(1, 2, 4, disjoint=[(0, 1), (1, 2)])
    assert [len(args["loops"]) for args in steps(module, "horizontal_fuse")] == [3]
    assert atomic_loops(module) == {"i0_0", "i0_2", "i2_0", "i2_2"}


def test_rows_are_initialized_before_other_buckets_add_to_them():
    module = in_buckets(1, 2, 4, init=(0,), disjoint=[(1, 2)])
    assert [args["loops"] for args in steps(module, "horizontal_fuse")] == [("i1_0", "i2_0")]
    assert atomic_loops(module) == set()


@pytest.mark.parametrize("features", ["K = T.sp.dense_fixed(f)", "K = T.sp.dense_fixed(8)", ""])
def test_threads_have_as_many_slots_in_each_bucket(features):
    module = in_buckets(1, 2, 8, features=features)
    rows = [args["factors"] for args in steps(module, "split") if args["loop"].startswith("i")]
    threads = 128 if not features else 16 if "8" in features else 4
    assert rows == [(None, 8, threads), (None, 4, threads), (None, 1, threads)]


def test_the_rule_is_for_several_iterations_on_machines_with_grids():
    module = in_buckets(1, 2)
    assert grid_iterations(module, RuleContext(machine=Machine())) is None
    assert grid_iterations(module_of(CSR + SUM), RuleContext(machine=GPU)) is None
    assert schedule_report(module, GPU).rule == "grid_iterations"
    assert schedule_report(module, Machine()).rule == "separate_iterations"


def test_names_that_a_later_iteration_frees_are_those_of_loops_that_are_split_before():
    # The products fuse i_1 and j_1 before any loop is split: the split of i makes an i_1.
    module = parse_module(
        """
@T.prim_func
def counted(
    a: T.handle, g: T.handle, indptr: T.handle, indices: T.handle,
    c: T.handle, d: T.handle, m: T.int64, n: T.int64, f: T.int64, nnz: T.int64,
) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (indptr, indices), "int32")
    K = T.sp.dense_fixed(f)
    A = T.sp.match_buffer(a, (I, J), "float32")
    G = T.sp.match_buffer(g, (I, K), "float32")
    C = T.sp.match_buffer(c, (I, K), "float32")
    D = T.sp.match_buffer(d, (I, J), "float32")
    with T.sp.iteration([I, J, K], "SRS", "sums") as [i, j, k]:
        with T.init():
            C[i, k] = 0.0
        C[i, k] = C[i, k] + A[i, j] * G[i, k]
    with T.sp.iteration([I, J, K], "SSR", "products") as [i_1, j_1, k_1]:
        with T.init():
            D[i_1, j_1] = 0.0
        D[i_1, j_1] = D[i_1, j_1] + A[i_1, j_1] * G[i_1, k_1]
"""
    )
    assert {"i_1", "i_1_j_1_1"} <= {args["loop"] for args in steps(module, "bind")}
