"""The rule for several iterations, one after the other, such as those over the parts of a tensor."""

from __future__ import annotations

import pytest

from gossamer_ir.interchange.records import Stats
from gossamer_ir.script import parse_module
from gossamer_ir.transform.specialize import specialize
from gossamer_machine import Machine
from gossamer_schedule import decompose_format
from gossamer_schedule.rules import schedule_report
from gossamer_testkit.examples import SPMM_COORDINATE

TARGET = Machine()
COO = """
@T.format
def coo(a: T.handle, p: T.handle, q: T.handle, m: T.int64, n: T.int64, nnz: T.int64) -> None:
    O = T.sp.dense_fixed(1)
    I = T.sp.compressed_fixed(O, (m, nnz), p, "int32", unique=False, padded=False)
    J = T.sp.compressed_fixed(I, (n, 1), q, "int32", padded=False)
    A = T.sp.match_buffer(a, (O, I, J), "float32")
    T.sp.map(lambda o, i, j: (i, j), shape=(m, n))
"""
ROWS = """
@T.format
def rows(a: T.handle, r: T.handle, q: T.handle, m: T.int64, n: T.int64, stored: T.int64) -> None:
    O = T.sp.dense_fixed(1)
    I = T.sp.compressed_fixed(O, (m, stored), r, "int32", padded=False)
    J = T.sp.compressed_fixed(I, (n, 8), q, "int32")
    A = T.sp.match_buffer(a, (O, I, J), "float32")
    T.sp.map(lambda o, i, j: (i, j), shape=(m, n))
"""


def in_parts(*formats, features=64):
    names = tuple(f"p{number}" for number in range(len(formats)))
    module = (
        SPMM_COORDINATE if features is None else specialize(SPMM_COORDINATE, {"width": features})
    )
    return decompose_format(module, ("A",), names=names, formats=formats).module


def steps(report, op):
    return [step.args for step in report.schedule.loop if step.op == op]


def test_each_part_has_the_schedule_of_its_pattern():
    report = schedule_report(in_parts(ROWS, COO), TARGET)
    assert report.rule == "separate_iterations"
    assert report.pattern == "iterations one after the other: csrmm_init, csrmm_p0, csrmm_p1"
    loops = [args["loop"] for args in steps(report, "parallel")]
    assert loops == ["i_init", "i_p0", "k_2_0"]


@pytest.mark.parametrize(("features", "rows"), [(64, 128), (128, 64)])
def test_threads_share_an_init_from_512_vectors_on_because_later_iterations_find_it_in_their_caches(
    features, rows
):
    report = schedule_report(in_parts(ROWS, features=features), TARGET)
    init = steps(report, "parallel")[0]
    assert (init["loop"], init["grain"]) == ("i_init", rows)


def test_caches_of_one_buffer_have_different_names():
    report = schedule_report(in_parts(ROWS, ROWS), TARGET)
    assert [args["block"] for args in steps(report, "reverse_compute_at")] == [
        "csrmm_p0_C_data_local",
        "csrmm_p1_C_data_local_1",
    ]


@pytest.mark.parametrize("features", [1, 7, 64, None])
def test_all_numbers_of_features_are_scheduled(features):
    assert (
        schedule_report(in_parts(ROWS, COO, features=features), TARGET).rule
        == "separate_iterations"
    )


def test_a_result_that_is_read_again_is_not_stored_around_the_caches():
    stats = Stats(rows=1 << 20, columns=1 << 20, nnz=9 << 20, longest_row=99, empty_rows=0)
    csr = """
@T.format
def csr(a: T.handle, p: T.handle, q: T.handle, m: T.int64, n: T.int64, nnz: T.int64) -> None:
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (p, q), "int32")
    A = T.sp.match_buffer(a, (I, J), "float32")
"""
    alone, read_again = (
        schedule_report(in_parts(*formats, features=512), TARGET, stats)
        for formats in ([csr], [csr, csr])
    )
    assert len(steps(alone, "store_nontemporal")) == 1
    # Only the last part stores what no other one reads.
    around = [args["block"] for args in steps(read_again, "store_nontemporal")]
    assert around == ["csrmm_p1_C_data_local_1"]


STORED = """
@T.prim_func
def f(a: T.handle, b: T.handle, c: T.handle, s: T.handle, t: T.handle, x: T.handle,
      m: T.int64, n: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    M = T.sp.dense_fixed(m)
    K = T.sp.dense_fixed(8)
    Ob = T.sp.dense_fixed(1)
    Ib = T.sp.compressed_fixed(Ob, (m, n), s, "int32", padded=False)
    Jb = T.sp.compressed_fixed(Ib, (m, 4), x, "int32")
    Oc = T.sp.dense_fixed(1)
    Ic = T.sp.compressed_fixed(Oc, (m, n), t, "int32", padded=False)
    Jc = T.sp.compressed_fixed(Ic, (m, 4), x, "int32")
    A = T.sp.match_buffer(a, (Ob, Ib, Jb), "float32")
    B = T.sp.match_buffer(b, (Oc, Ic, Jc), "float32")
    Y = T.sp.match_buffer(c, (M,), "float32")
    RELATION
    with T.sp.iteration([Ob, Ib, Jb], "SSR", "first") as [o, i, j]:
        with T.init():
            Y[i] = 0.0
        Y[i] = Y[i] + A[o, i, j]
    with T.sp.iteration([Oc, Ic, Jc], "SSR", "second") as [u, v, w]:
        with T.init():
            Y[v] = 0.0
        Y[v] = Y[v] + B[u, v, w]
"""


def test_iterations_over_rows_that_are_declared_disjoint_are_joined():
    for relation, expected in (
        ("T.sp.assume(disjoint(Ib, Ic))", [("i", "v")]),
        ("T.sp.assume(disjoint(Ic, Ib))", [("i", "v")]),
        ("T.sp.assume(subset(Ic, Ib))", []),
        ("", []),
    ):
        report = schedule_report(parse_module(STORED.replace("RELATION", relation)), TARGET)
        assert report.rule == "separate_iterations"
        assert [args["loops"] for args in steps(report, "horizontal_fuse")] == expected


MIXED = """
@T.prim_func
def f(x: T.handle, y: T.handle, n: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(n)
    K = T.sp.dense_fixed(8)
    X = T.sp.match_buffer(x, (I, K), "float32")
    Y = T.sp.match_buffer(y, (K, I), "float32")
    with T.sp.iteration([I, K], "SS", "first") as [i, k]:
        X[i, k] = 1.0
    with T.sp.iteration([I, K], "SS", "second") as [i_other, k_other]:
        Y[k_other, i_other] = T.exp(Y[k_other, i_other])
"""


def test_an_iteration_of_no_pattern_runs_as_written():
    report = schedule_report(parse_module(MIXED), TARGET)
    assert [args["loop"] for args in steps(report, "parallel")] == ["i"]
    neither = MIXED.replace("X[i, k] = 1.0", "X[k, i] = 1.0").replace("(I, K), ", "(K, I), ", 1)
    assert schedule_report(parse_module(neither), TARGET).rule is None


def test_an_iteration_with_a_buffer_of_one_thread_is_not_scheduled():
    """Another iteration stores to it, and each thread would have its own."""
    private = MIXED.replace('X = T.sp.match_buffer(x, (I, K), "float32")', "X = LOCAL")
    local = 'T.sp.alloc_buffer((I, K), "float32", scope="local")'
    report = schedule_report(parse_module(private.replace("LOCAL", local)), TARGET)
    assert steps(report, "parallel") == []
    shared = local.replace(', scope="local"', "")
    report = schedule_report(parse_module(private.replace("LOCAL", shared)), TARGET)
    assert [args["loop"] for args in steps(report, "parallel")] == ["i"]
