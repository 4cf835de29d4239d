"""The rule for several computations over the same rows."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from rule_programs import NARROW

from gossamer_ir.interchange.records import Stats
from gossamer_ir.script import parse_module
from gossamer_ir.transform.specialize import specialize
from gossamer_machine import Machine
from gossamer_schedule import replay
from gossamer_schedule.rules import apply_rule, default_schedule, schedule_report
from gossamer_schedule.rules.library.fused_rows import SHORT_SIBLING_ROW

TARGET = Machine()
PROGRAM = """
@T.prim_func
def main(x: T.handle, y: T.handle, b: T.handle, c: T.handle, r: T.handle, p: T.handle, q: T.handle,
         m: T.int64, n: T.int64, f: T.int64, nnz: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2, "tir.noalias": True})
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (p, q))
    J_detach = T.sp.dense_fixed(n)
    K = T.sp.dense_fixed(f)
    X = T.sp.match_buffer(x, (I, K), "float32")
    Y = T.sp.match_buffer(y, (J_detach, K), "float32")
    B = T.sp.match_buffer(b, (J_detach, K), "float32")
    C = T.sp.match_buffer(c, (I, K), "float32")
    R = T.sp.match_buffer(r, (I,), "float32")
    S = T.sp.alloc_buffer((I, J), "float32")
    with T.sp.iteration([I, J, K], "SSR", "scores") as [i, j, k]:
        with T.init():
            S[i, j] = 0.0
        S[i, j] = S[i, j] + X[i, k] * Y[j, k]
    with T.sp.iteration([I, J], "SR", "most") as [g, ja]:
        with T.init():
            R[g] = T.float32("-inf")
        R[g] = T.max(R[g], S[g, ja])
    with T.sp.iteration([I, J], "SS", "rest") as [h, jb]:
        S[h, jb] = S[h, jb] - R[h]
    with T.sp.iteration([I, J, K], "SRS", "products") as [o, jc, kc]:
        with T.init():
            C[o, kc] = 0.0
        C[o, kc] = C[o, kc] + S[o, jc] * B[jc, kc]
    with T.sp.iteration([I, K], "SS", "scaled") as [u, kd]:
        C[u, kd] = C[u, kd] * R[u]
"""


def module_of(text=PROGRAM, *, features=32):
    return specialize(parse_module(text), {} if features is None else {"f": features})


def rows_of(mean, *, columns=1000):
    return Stats(1000, columns, nnz=mean * 1000, longest_row=mean + 9, empty_rows=0)


def steps(schedule, op):
    return [step.args for step in schedule.loop if step.op == op]


@pytest.mark.parametrize("features", [1, 16, 33, 600, None])
@pytest.mark.parametrize("stats", [None, rows_of(2), rows_of(80, columns=10**7)])
def test_all_parts_run_on_a_row_before_the_next_one(stats, features):
    module = module_of(features=features)
    report = schedule_report(module, TARGET, stats)
    assert report.rule == "fused_rows"
    fused = [(step.op, step.args["iteration"]) for step in report.schedule.coordinate]
    parts = ("products", "rest", "most", "scores")
    assert fused == [("sparse_compute_at", name) for name in parts]
    (outer,) = replay(module, report.schedule.coordinate).functions[0].body
    assert [inner.name for inner in outer.body] == [*reversed(parts), "scaled"]
    (rows,) = steps(report.schedule, "parallel")
    assert (rows["loop"], report.schedule.loop[-1].op) == ("u", "parallel")
    assert "J_indptr[u]" in rows["weight"]
    assert all(args["loop"] != "u" for args in steps(report.schedule, "reverse_compute_at"))


def test_results_of_parts_are_not_stored_around_the_caches():
    stats = Stats(rows=1 << 20, columns=1 << 20, nnz=9 << 20, longest_row=99, empty_rows=0)
    assert (
        steps(default_schedule(module_of(features=512), TARGET, stats), "store_nontemporal") == []
    )


def test_rows_are_asked_for_from_shorter_ones_on():
    far = (2 << 20) // 128
    asked = {
        (features, columns): [
            args["buffer"]
            for args in steps(default_schedule(module_of(features=features), TARGET,
                                     rows_of(9, columns=columns)), "prefetch")
        ]
        for features in (31, 32) for columns in (1, far)
    }  # fmt: skip
    assert asked == {(31, 1): [], (31, far): [], (32, 1): [], (32, far): ["Y_data", "B_data"]}


def test_short_rows_are_gone_through_one_element_at_a_time():
    for mean in (SHORT_SIBLING_ROW, SHORT_SIBLING_ROW + 1):
        schedule = default_schedule(module_of(), TARGET, rows_of(mean))
        loops = {args["loop"] for args in steps(schedule, "vectorize")}
        groups = {args["loop"] for args in steps(schedule, "split")} & {"j"}
        assert loops.isdisjoint({"ja_1", "jb_1"}) == (mean == SHORT_SIBLING_ROW)
        assert groups == (set() if mean == SHORT_SIBLING_ROW else {"j"})
        assert {"k_1", "kc_1", "kd_1"} <= loops


LEFT_ALONE = {
    "an unknown part": PROGRAM.replace("T.max(R[g], S[g, ja])", "R[g] + R[g] * S[g, ja]"),
    "other rows": PROGRAM.replace("* R[u]", "* R[0]"),
    "other axes first": PROGRAM.replace(
        '[I, K], "SS", "scaled") as [u, kd]', '[K, I], "SS", "scaled") as [kd, u]'
    ),
    "rows that are reduced": PROGRAM.replace('"SR", "most"', '"RR", "most"'),
    "a store between": PROGRAM.replace(
        '    with T.sp.iteration([I, K], "SS", "scaled")',
        '    R[0] = 1.0\n    with T.sp.iteration([I, K], "SS", "scaled")',
    ),
}


@pytest.mark.parametrize("why", LEFT_ALONE)
def test_other_programs_are_left_alone(why):
    assert apply_rule("fused_rows", module_of(LEFT_ALONE[why]), TARGET) is None


def test_parts_have_the_vectors_of_the_machine():
    for machine, lanes_of_machine in (
        (NARROW, 4),
        (replace(NARROW, is_scalable=True), "4 * T.vscale()"),
    ):
        schedule = default_schedule(module_of(features=32), machine, rows_of(80))
        lanes = {args["factors"][-1] for args in steps(schedule, "split")}
        assert 16 not in lanes
        assert lanes_of_machine in lanes
