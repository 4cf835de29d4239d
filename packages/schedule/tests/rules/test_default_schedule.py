"""The programs that the rules recognize, and those that they leave unchanged."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from rule_programs import (
    AXES,
    CSR,
    DOT,
    NARROW,
    PRODUCT,
    STORED,
    SUM,
    TARGET,
    WIDE,
    module_of,
    rows_of,
    scaled,
)

from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import Schedule, Stats
from gossamer_ir.script import parse_module
from gossamer_ir.transform.specialize import specialize
from gossamer_schedule.rules import RULES, apply_rule, default_schedule, library, schedule_report
from gossamer_testkit import script
from gossamer_testkit.examples import SCALE


def last_step(body, stats=None, **sizes):
    return default_schedule(module_of(body, **sizes), TARGET, stats).loop[-1]


WEIGHTS = [
    (AXES["csr"] + PRODUCT, "T.int64(J_indptr[i]) + 4 * i"),
    (AXES["int64"] + PRODUCT, "J_indptr[i] + 4 * i"),
    (AXES["ragged"] + SUM, "T.int64(J_indptr[i]) + 4 * i"),
    (AXES["ell"] + PRODUCT, "w * i + 4 * i"),
    (AXES["wide"] + SUM, "3 * i + 4 * i"),
    (AXES["affine"] + PRODUCT, None),
    (STORED, "T.int64(J_indptr[T.int64(I_indptr[z]) + i]) + 4 * i"),
]


@pytest.mark.parametrize(("body", "weight"), WEIGHTS)
def test_rows_run_in_parallel_by_their_slots(body, weight):
    step = last_step(body)
    assert (step.op, step.args["loop"], step.args.get("weight")) == ("parallel", "i", weight)


DIFFERENCES = [
    (PRODUCT, "C[i, k] + A[i, j]", "C[i, k] - A[i, j]", True),
    (DOT, "C[i] + A[i, j]", "C[i] - A[i, j]", False),
    (SUM, "C[i] + A[i, j]", "C[i] - A[i, j]", False),
]


@pytest.mark.parametrize(("body", "old", "new", "has_vectors"), DIFFERENCES)
def test_differences_are_accumulated_in_their_order(body, old, new, has_vectors):
    """Lanes may be features, but not parts of one result."""
    module = module_of(CSR + body.replace(old, new), f=32)
    ops = [step.op for step in default_schedule(module, TARGET, rows_of(100)).loop]
    assert {"cache_write", "reindex_cache_write"} & set(ops)
    assert ops[-1] == "parallel"
    assert ("vectorize" in ops) == has_vectors


WITHOUT_INIT = {"row sums": SUM, "SpMM": PRODUCT, "SpMV": DOT}


@pytest.mark.parametrize("body", WITHOUT_INIT.values(), ids=WITHOUT_INIT)
def test_what_goes_on_from_the_output_is_scheduled_as_what_starts_anew(body):
    """Without an init, accumulators begin with the output, and are not aligned to other rows."""
    anew, unaligned = CSR + body, {"f": 40} if body == PRODUCT else {}
    going_on = re.sub(r"        with T.init\(\):\n.*\n", "", anew)
    assert going_on != anew
    reports = [schedule_report(module_of(text, **unaligned), TARGET) for text in (going_on, anew)]
    assert choices(reports[0]) == choices(reports[1])


def choices(report):
    return [(decision.what, decision.steps) for decision in report.decisions]


SECOND = """
    with T.sp.iteration([I], "S", "again") as [h]:
        C[h] = C[0]
"""
LEFT_ALONE = {
    "elements elsewhere": scaled("csr", "A[i, j] * X[i]"),
    "elements of another length": scaled("csr", "A[i, j] * R[j]"),
    "elements looked up": scaled("csr", "A[j, j]"),
    "elements at an expression": scaled("csr", "X[j // 2]"),
    "a column of elements": scaled("csr", "A[i, j]").replace("C[i, j] =", "X[j] ="),
    "no reduction": CSR
    + SUM.replace("C[i] + A[i, j]", "A[i, j] + A[i, j]").replace('"SR"', '"SS"'),
    "a sum of what depends on it": CSR + SUM.replace("C[i] + A", "C[i] + C[i] * A"),
    "a difference from another": CSR + SUM.replace("C[i] + A[i, j]", "A[i, j] - C[i]"),
    "a difference of what depends on it": CSR + SUM.replace("C[i] + A", "C[i] - C[i] * A"),
    "two inits": CSR + SUM.replace("            C[i] = 0.0\n", "            C[i] = 0.0\n" * 2),
    "another element": CSR + SUM.replace("C[i]", "C[i + 0]"),
    "all rows at once": CSR + SUM.replace("C[i]", "C[0]"),
    "a taken name": CSR.replace("J =", "J_indptr = T.sp.dense_fixed(n)\n    J =") + SUM,
    "no features": CSR + PRODUCT,
    "rows twice": STORED.replace("(o, s)", "(o, s), unique=False"),
    "rows in no order": STORED.replace("(o, s)", "(o, s), sorted=False"),
    "padded rows": STORED.replace("(o, s)", "(o, s), padded=True"),
    "many fibers": STORED.replace("dense_fixed(1)", "dense_fixed(r)"),
    "a tree of rows": STORED.replace('[O, I, J], "SSR"', '[O, I, J], "SRR"'),
}


@pytest.mark.parametrize("why", LEFT_ALONE)
def test_other_programs_are_left_alone(why):
    sizes = {"f": 0} if why == "no features" else {}
    assert default_schedule(module_of(LEFT_ALONE[why], **sizes), TARGET) == Schedule()


def test_rows_that_read_another_row_are_not_fused():
    assert schedule_report(module_of(CSR + SUM + SECOND), TARGET).rule == "separate_iterations"


def test_modules_of_later_stages_are_left_alone():
    text = """
@T.prim_func
def fill(x: T.handle, n: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    X = T.match_buffer(x, (n,), "float32")
    for i in T.serial(n):
        X[i] = 1.0
"""
    assert default_schedule(parse_module(text), TARGET) == Schedule()


# --- reasons

FAR = Stats(rows=10**6, columns=10**6, nnz=10**8, longest_row=10**4, empty_rows=0)
PROGRAMS = {
    "product": AXES["csr"] + PRODUCT,
    "padded product": AXES["ell"] + PRODUCT,
    "sums": AXES["csr"] + SUM,
    "dots": AXES["csr"] + DOT,
    "stored rows": STORED,
    "numbered elements": scaled("csr", "A[i, j] * 2.0"),
    "elements by rows": scaled("csr", "A[i, j] * R[i]"),
    "read at other places": AXES["csr"] + PRODUCT.replace("B[j, k]", "B[j, k // 2]"),
    "written in another order": (AXES["csr"] + PRODUCT)
    .replace('[I, J, K], "SRS"', '[K, I, J], "SSR"')
    .replace("as [i, j, k]", "as [k, i, j]"),
}
STATS = {"unknown": None, "short": rows_of(2, longest=3), "long": rows_of(500), "far": FAR}


@pytest.mark.parametrize("features", [None, 1, 40, 128, 700])
@pytest.mark.parametrize("stats", STATS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_each_decision_is_a_sentence_with_a_reason(name, stats, features):
    sizes = {} if features is None else {"f": features}
    module = module_of(PROGRAMS[name], **sizes)
    for target in (WIDE, NARROW):
        report = schedule_report(module, target, STATS[stats])
        assert report.rule
        assert report.pattern
        for decision in report.decisions:
            for text in (decision.what, decision.why):
                assert text == text.strip().rstrip(".")
                assert "None" not in text
                assert "  " not in text
        assert report.schedule == default_schedule(module, target, STATS[stats])


def test_the_order_of_axes_is_explained():
    report = schedule_report(module_of(PROGRAMS["written in another order"], f=40), WIDE)
    assert report.decisions[0].stage == "coordinate"
    assert report.decisions[0].what == "the order i, j, k"
    assert report.decisions[0].steps == report.schedule.coordinate


def test_an_unknown_rule_is_refused_with_those_that_exist():
    with pytest.raises(
        ArgumentError, match=r"There is no rule 'spmm'\. Rules are row_spmm, "
    ) as caught:
        apply_rule("spmm", SCALE, TARGET)
    assert caught.value.code == "rule.name"


def test_every_rule_of_the_folder_is_in_the_list():
    (folder,) = library.__path__
    files = {path.stem for path in Path(folder).glob("[!_]*.py")}
    assert {rule.name for rule in RULES} == files


def test_every_rule_has_a_file_of_tests():
    folder = Path(__file__).parent / "library"
    assert {rule.name for rule in RULES} == {
        path.stem.removeprefix("test_") for path in folder.glob("test_*.py")
    }


SCRIPTS = {
    "row_spmv": "csr_reduce",
    "row_spmm": "csr_spmm",
    "block_spmm": "bsr_spmm",
    "slice_spmv": "sell_spmv_of_distinct_rows",
    "tile_spmm": "tiled_csr_spmm",
    "group_spmm": "row_groups_spmm",
    "row_sddmm": "sddmm",
    "elementwise": "csr_scaled",
}
"""A script of the testkit that each rule matches, with constants for the sizes in `SIZES`."""
SIZES = {
    "tile_spmm": {"feat_size": 40},
    "group_spmm": {"feat_size": 40},
}
OF_SEVERAL_ITERATIONS = (
    "dense_rows",
    "scatter_spmm",
    "fused_rows",
    "separate_iterations",
)
"""Rules for programs of several iterations, and for their parts (`test_fused_rows.py`,
`test_separate_iterations.py`, `library/test_scatter_spmm.py`)."""

WITHOUT_SCRIPT = (
    "block_spmv",
    "grid_block_sddmm",
    "grid_block_spmm",
    "grid_dense_rows",
    "grid_iterations",
    "grid_rows",
    "n_m_spmm",
    "grid_n_m_spmm",
    "tensorized_block_spmm",
)
"""Rules whose programs or machines are in their own files of tests (`library/test_<rule>.py`)."""


def test_every_rule_has_a_program_that_it_matches():
    assert {rule.name for rule in RULES} == {*SCRIPTS, *OF_SEVERAL_ITERATIONS, *WITHOUT_SCRIPT}
    for rule, name in SCRIPTS.items():
        module = specialize(parse_module(script(name)), SIZES.get(rule, {}))
        assert schedule_report(module, TARGET).rule == rule
