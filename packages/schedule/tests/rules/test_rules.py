"""The programs that the rules recognize, and those that they leave unchanged."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import Schedule, Stats, Target
from gossamer_ir.script import parse_module
from gossamer_ir.transform.specialize import specialize
from gossamer_schedule.rules import RULES, apply_rule, default_schedule, library, schedule_report
from gossamer_schedule.rules.patterns.row_reduction import row_reduction
from gossamer_testkit import script
from gossamer_testkit.examples import SCALE

TARGET = Target("generic-cpu")
CSR = """
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (p, q))
"""
AXES = {
    "csr": CSR,
    "int64": CSR.replace("(p, q)", '(p, q), "int64"'),
    "ragged": "    I = T.sp.dense_fixed(m)\n    J = T.sp.dense_varied(I, (n, nnz), p)\n",
    "ell": "    I = T.sp.dense_fixed(m)\n    J = T.sp.compressed_fixed(I, (n, w), q)\n",
    "wide": "    I = T.sp.dense_fixed(m)\n    J = T.sp.compressed_fixed(I, (n, 3), q)\n",
    "affine": "    I = T.sp.dense_fixed(m)\n    J = T.sp.compressed_fixed(I, (n, w + w), q)\n",
}
PRODUCT = """
    N = T.sp.dense_fixed(n)
    K = T.sp.dense_fixed(f)
    A = T.sp.match_buffer(a, (I, J), "float32")
    B = T.sp.match_buffer(b, (N, K), "float32")
    C = T.sp.match_buffer(c, (I, K), "float32")
    with T.sp.iteration([I, J, K], "SRS", "product") as [i, j, k]:
        with T.init():
            C[i, k] = 0.0
        C[i, k] = C[i, k] + A[i, j] * B[j, k]
"""
SUM = """
    A = T.sp.match_buffer(a, (I, J), "float32")
    C = T.sp.match_buffer(c, (I,), "float32")
    with T.sp.iteration([I, J], "SR", "total") as [i, j]:
        with T.init():
            C[i] = 0.0
        C[i] = C[i] + A[i, j]
"""
DOT = """
    N = T.sp.dense_fixed(n)
    A = T.sp.match_buffer(a, (I, J), "float32")
    X = T.sp.match_buffer(b, (N,), "float32")
    C = T.sp.match_buffer(c, (I,), "float32")
    with T.sp.iteration([I, J], "SR", "total") as [i, j]:
        with T.init():
            C[i] = 0.0
        C[i] = C[i] + A[i, j] * X[j]
"""
STORED = """
    O = T.sp.dense_fixed(1)
    I = T.sp.compressed_varied(O, (m, r), (o, s))
    J = T.sp.compressed_varied(I, (n, nnz), (p, q))
    M = T.sp.dense_fixed(m)
    A = T.sp.match_buffer(a, (O, I, J), "float32")
    C = T.sp.match_buffer(c, (M,), "float32")
    with T.sp.iteration([O, I, J], "SSR", "total") as [z, i, j]:
        with T.init():
            C[i] = 0.0
        C[i] = C[i] + A[z, i, j]
"""
HEAD = """
@T.prim_func
def main(a: T.handle, b: T.handle, c: T.handle, o: T.handle, s: T.handle, p: T.handle, q: T.handle,
         m: T.int64, n: T.int64, nnz: T.int64, w: T.int64, f: T.int64, r: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
"""


def module_of(body, **sizes):
    return specialize(parse_module(HEAD + body), sizes)


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
    found = last_step(body)
    assert (found.op, found.args["loop"], found.args.get("weight")) == ("parallel", "i", weight)


CONTIGUOUS = [(CSR + SUM, True), (AXES["ragged"] + SUM, True), (CSR + DOT, False)]
CONTIGUOUS += [(AXES["ragged"] + DOT, True), (STORED, True), (AXES["ell"] + SUM, True)]


@pytest.mark.parametrize(("body", "is_contiguous"), CONTIGUOUS)
def test_terms_at_positions_are_told_from_terms_at_coordinates(body, is_contiguous):
    assert row_reduction(module_of(body)).is_contiguous == is_contiguous


def lanes_and_rest(body, *, stats=None, **sizes):
    """The lanes of the partial results, and the treatment of the remainder; None without vectors."""
    trace = default_schedule(module_of(body, **sizes), TARGET, stats).loop
    splits = [step.args["factors"] for step in trace if step.op == "split"]
    vectors = [step.args.get("rest", "scalar") for step in trace if step.op == "vectorize"]
    return (splits[0][-1], vectors[0]) if vectors else None


def rows_of(mean, longest=1000):
    return Stats(100, 100, int(mean * 100), longest, 0)


VECTORS = [
    (CSR + DOT, None, None),
    (CSR + DOT, rows_of(4), None),
    (CSR + DOT, rows_of(20), (8, "masked")),
    (CSR + DOT, rows_of(60), (8, "scalar")),
    (AXES["wide"] + DOT, None, None),
    (CSR + SUM, None, (16, "masked")),
    (CSR + SUM, rows_of(2), (16, "masked")),
    (CSR + SUM, rows_of(2, longest=2), None),
    (CSR + SUM, rows_of(500), (64, "masked")),
    (AXES["wide"] + SUM, None, None),
]


@pytest.mark.parametrize(("body", "stats", "expected"), VECTORS)
def test_vectors_are_chosen_by_the_length_of_rows(body, stats, expected):
    assert lanes_and_rest(body, stats=stats) == expected


def test_vectors_have_the_width_of_the_target():
    narrow = Target.parse("generic-cpu:vector_bits=256")
    split = default_schedule(module_of(CSR + SUM), narrow).loop[3]
    assert split.args["factors"] == (None, 8)


READS = {
    "B[j, k]": True,
    "B[j, 31]": True,
    "B[j, 32]": False,
    "B[j, k + 1]": False,
    "B[j + 0, k]": False,
    "B[k, j]": False,
    "B[j, i]": False,
    "T.Select(j < i, B[j, k], 0.0)": True,
}


@pytest.mark.parametrize("read", READS)
def test_vectors_are_for_operands_read_at_the_coordinates(read):
    body = CSR + PRODUCT.replace("B[j, k]", read)
    ops = [step.op for step in default_schedule(module_of(body, f=32), TARGET).loop]
    assert ops[-1] == "parallel"
    assert ("vectorize" in ops) == READS[read]


def test_a_number_per_row_without_vectors_stays_in_a_register():
    body = CSR + DOT.replace("X[j]", "X[j // 2]")
    ops = [step.op for step in default_schedule(module_of(body), TARGET, rows_of(100)).loop]
    assert ops == ["cache_write", "reverse_compute_at", "decompose_reduction", "parallel"]


SCALED = """
    N = T.sp.dense_fixed(n)
    A = T.sp.match_buffer(a, (I, J), "float32")
    C = T.sp.match_buffer(c, (I, J), "float32")
    R = T.sp.match_buffer(o, (I,), "float32")
    X = T.sp.match_buffer(b, (N,), "float32")
    with T.sp.iteration([I, J], "SS", "scaled") as [i, j]:
        C[i, j] = VALUE
"""


def scaled(axes, value):
    return AXES[axes] + SCALED.replace("VALUE", value)


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


ELEMENTWISE = [
    (scaled("csr", "A[i, j] * 2.0"), "i_j_0"),
    (scaled("csr", "C[i, j] * 2.0"), "i_j_0"),
    (scaled("csr", "A[i, j] * X[j]"), "i_j_0"),
    (scaled("ragged", "A[i, j]"), "i_j_0"),
    (scaled("csr", "A[i, j] * R[i]"), "i"),
    (scaled("csr", "T.Select(i == j, A[i, j], 0.0)"), "i"),
    (scaled("ragged", "A[i, j] * X[j]"), "i"),
    (scaled("ell", "A[i, j]"), "i"),
    (scaled("affine", "A[i, j]"), "i"),
]


@pytest.mark.parametrize(("body", "loop"), ELEMENTWISE)
def test_elements_are_numbered_through_where_no_row_is_asked_for(body, loop):
    schedule = default_schedule(module_of(body), TARGET)
    fused = [step.args["axes"] for step in schedule.coordinate]
    assert fused == ([] if loop == "i" else [("I", "J")])
    assert [step.op for step in schedule.loop] == ["split", "vectorize", "parallel"]
    assert schedule.loop[-1].args["loop"] == loop


def test_short_rows_are_gone_through_one_element_at_a_time():
    body = scaled("csr", "A[i, j] * R[i]")
    trace = default_schedule(module_of(body), TARGET, rows_of(2, longest=3)).loop
    assert [step.op for step in trace] == ["parallel"]


WITHOUT_INIT = {"row sums": SUM, "SpMM": PRODUCT, "SpMV": DOT}


@pytest.mark.parametrize("body", WITHOUT_INIT.values(), ids=WITHOUT_INIT)
def test_what_goes_on_from_the_output_is_scheduled_as_what_starts_anew(body):
    """Without an init, accumulators begin with the output, and are not aligned to other rows."""
    anew, unaligned = CSR + body, {"f": 40} if body == PRODUCT else {}
    going_on = re.sub(r"        with T.init\(\):\n.*\n", "", anew)
    assert going_on != anew
    found = [schedule_report(module_of(text, **unaligned), TARGET) for text in (going_on, anew)]
    assert choices(found[0]) == choices(found[1])


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

WIDE, NARROW = Target.parse("generic-cpu:vector_bits=512"), Target.parse("g:vector_bits=128")
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
        found = schedule_report(module, target, STATS[stats])
        assert found.rule
        assert found.pattern
        for decision in found.decisions:
            for text in (decision.what, decision.why):
                assert text == text.strip().rstrip(".")
                assert "None" not in text
                assert "  " not in text
        assert found.schedule == default_schedule(module, target, STATS[stats])


def test_the_order_of_axes_is_explained():
    found = schedule_report(module_of(PROGRAMS["written in another order"], f=40), WIDE)
    assert found.decisions[0].stage == "coordinate"
    assert found.decisions[0].what == "the order i, j, k"
    assert found.decisions[0].steps == found.schedule.coordinate


def test_the_target_is_named_where_it_decides():
    module = module_of(PROGRAMS["product"], f=256)
    found = {target: schedule_report(module, target).decisions[1].what for target in (WIDE, NARROW)}
    assert found[WIDE] == "features in 1 tile of 17 vectors of 16 lanes"
    assert found[NARROW] == "features in 10 tiles of 7 vectors of 4 lanes"


def product_steps(stats, *, target=WIDE, **sizes):
    schedule = default_schedule(module_of(PROGRAMS["product"], **sizes), target, stats)
    return {step.op: step.args for step in schedule.loop}


def with_caches(private, shared):
    return Target.parse(f"generic-cpu:vector_bits=512,l2={private},l3={shared}")


@pytest.mark.parametrize("shared", [16 << 20, 64 << 20])
def test_vectors_are_aligned_to_rows_of_an_operand_that_stays_in_the_shared_cache(shared):
    def is_aligned(features, size):
        stats = Stats(100, size // (4 * features), 900, 50, 0)
        return "align" in product_steps(stats, target=with_caches(1 << 20, shared), f=features)

    found = {features: is_aligned(features, shared // 8) for features in (8, 16, 40, 64)}
    assert found == {8: False, 16: True, 40: False, 64: True}
    assert not is_aligned(64, shared)


@pytest.mark.parametrize("private", [1 << 20, 4 << 20])
def test_rows_of_an_operand_that_exceeds_the_private_cache_are_prefetched(private):
    def is_prefetched(size):
        stats = Stats(100, size // (4 * 200), 900, 50, 0)
        return "prefetch" in product_steps(stats, target=with_caches(private, 32 << 20), f=200)

    assert not is_prefetched(private)
    assert is_prefetched(4 * private)


def test_prefetches_look_as_far_ahead_as_lines_are_short():
    stats = Stats(100, 1 << 20, 900, 50, 0)
    distances = {
        features: product_steps(stats, f=features)["prefetch"]["distance"]
        for features in (128, 256, 512, 1000)
    }
    assert distances == {128: 6, 256: 6, 512: 6, 1000: 8}
    steps = product_steps(stats, f=512)
    assert steps["split"]["factors"][-2:] == (8, 16)


@pytest.mark.parametrize(
    ("gathers", "rest"), [("fast", "masked"), ("moderate", "masked"), ("slow", None)]
)
def test_remainders_are_masked_where_gathers_are_not_slow(gathers, rest):
    target = Target.parse(f"generic-cpu:vector_bits=512,gathers={gathers}")
    steps = default_schedule(module_of(PROGRAMS["dots"]), target, Stats(100, 100, 3000, 50, 0)).loop
    assert [step.args.get("rest") for step in steps if step.op == "vectorize"] == [rest]


@pytest.mark.parametrize(
    ("gathers", "mean", "rest"),
    [
        ("fast", 2, []),
        ("fast", 4, ["masked"]),
        ("fast", 100, ["masked"]),
        ("moderate", 4, []),
        ("moderate", 100, [None]),
        ("slow", 4, []),
    ],
)
def test_short_and_long_rows_use_gathers_that_are_fast(gathers, mean, rest):
    target = Target.parse(f"generic-cpu:vector_bits=512,gathers={gathers}")
    stats = Stats(100, 100, 100 * mean, 20 * mean, 0)
    steps = default_schedule(module_of(PROGRAMS["dots"]), target, stats).loop
    assert [step.args.get("rest") for step in steps if step.op == "vectorize"] == rest


def test_rows_that_are_gathered_often_are_aligned_up_to_the_whole_shared_cache():
    def is_aligned(uses):
        stats = Stats(columns := 32 << 10, columns, uses * columns, 50, 0)
        return "align" in product_steps(stats, target=with_caches(1 << 20, 32 << 20), f=256)

    assert [is_aligned(uses) for uses in (2, 8, 32)] == [False, False, True]


@pytest.mark.parametrize("shared", [16 << 20, 64 << 20])
def test_results_that_exceed_the_caches_are_stored_around_them(shared):
    target = with_caches(1 << 20, shared)
    for rows, is_stored in ((shared // 512, True), (shared // 4096, False)):
        steps = product_steps(Stats(rows, 100, 9 * rows, 50, 0), target=target, f=128)
        assert ("store_nontemporal" in steps) == is_stored
    assert "store_nontemporal" not in product_steps(None, target=target, f=128)


def test_an_unknown_rule_is_refused_with_those_that_exist():
    with pytest.raises(
        ArgumentError, match=r"There is no rule 'spmm'\. Rules are row_spmv, "
    ) as caught:
        apply_rule("spmm", SCALE, TARGET)
    assert caught.value.code == "rule.name"


def test_every_rule_of_the_folder_is_in_the_list():
    (folder,) = library.__path__
    files = {path.stem for path in Path(folder).glob("[!_]*.py")}
    assert {rule.name for rule in RULES} == files


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

WITHOUT_SCRIPT = ("block_spmv",)
"""Rules whose programs are in their own file of tests (`library/test_block_spmv.py`)."""


SLICED = script("sell_spmv_of_distinct_rows")
NOT_SLICED = {
    "rows may be repeated": SLICED.replace("    T.assume(distinct(ROWS))\n", ""),
    "rows may not exist": SLICED.replace("T.int64(ROWS[s, r]) < m", "T.int64(ROWS[s, r]) < n"),
    "an odd height": SLICED.replace("fixed(8", "fixed(9"),
    "a height of too many vectors": SLICED.replace("fixed(8", "fixed(72"),
    "a symbolic height": SLICED.replace("fixed(8", "fixed(longest"),
    "several elements of a row in a slot": SLICED.replace("(n, 1)", "(n, 2)"),
    "another place of the row": SLICED.replace("ROWS[s, r]", "ROWS[s, r - r]"),
    "no reduction": SLICED.replace("Y[T.int64(ROWS[s, r])] + A", "A"),
}


@pytest.mark.parametrize(("height", "lanes"), [(2, 2), (6, 2), (8, 8), (12, 4), (16, 8), (64, 8)])
def test_rows_of_a_slice_are_lanes(height, lanes):
    module = parse_module(SLICED.replace("fixed(8", f"fixed({height}"))
    found = schedule_report(module, TARGET)
    assert found.rule == "slice_spmv"
    assert found.decisions[0].what == f"the {height} rows of a slice in vectors of {lanes}"


@pytest.mark.parametrize("text", NOT_SLICED.values(), ids=NOT_SLICED)
def test_other_slices_run_as_written(text):
    assert schedule_report(parse_module(text), TARGET).rule == ""


BLOCKED = """
@T.prim_func
def blocked(x: T.handle, y: T.handle, a: T.handle, p: T.handle, q: T.handle, r: T.handle, m: T.int64,
            n: T.int64, slices: T.int64, longest: T.int64, slots: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    S = T.sp.dense_fixed(slices)
    W = T.sp.dense_varied(S, (longest, slots), p, "int32")
    II = T.sp.dense_fixed(3)
    JI = T.sp.dense_fixed(2)
    R = T.sp.dense_fixed(16, parent=W)
    JO = T.sp.compressed_fixed(R, (n // 2, 1), q, "int32")
    SR = T.sp.dense_fixed(slices)
    RR = T.sp.dense_fixed(16)
    M = T.sp.dense_fixed(m)
    N = T.sp.dense_fixed(n)
    A = T.sp.match_buffer(a, (S, W, II, JI, R, JO), "float32")
    X = T.sp.match_buffer(x, (N,), "float32")
    Y = T.sp.match_buffer(y, (M,), "float32")
    ROWS = T.sp.match_buffer(r, (SR, RR), "int32")
    T.assume(distinct(ROWS))
    with T.sp.iteration([S, W, II, JI, R, JO], "SRSRSR", "blocked") as [s, w, ii, ji, r, jo]:
        if T.int64(ROWS[s, r]) * 3 + ii >= 0 and T.int64(ROWS[s, r]) * 3 + ii < m:
            Y[T.int64(ROWS[s, r]) * 3 + ii] = (
                Y[T.int64(ROWS[s, r]) * 3 + ii] + A[s, w, ii, ji, r, jo] * X[jo * 2 + ji])
"""
NOT_BLOCKED = {
    "rows may be repeated": BLOCKED.replace("    T.assume(distinct(ROWS))\n", ""),
    "rows may not exist": BLOCKED.replace("+ ii < m", "+ ii < n"),
    "rows of blocks overlap": BLOCKED.replace("* 3 + ii", "* 2 + ii"),
    "columns may not exist": BLOCKED.replace("X[jo * 2 + ji]", "X[jo * 3 + ji]"),
    "results without registers": BLOCKED.replace("fixed(3)", "fixed(30)").replace("* 3", "* 30"),
    "a symbolic number of rows": BLOCKED.replace("fixed(3)", "fixed(longest)"),
    "a column that is no reduction": BLOCKED.replace("SRSRSR", "SRSSSR"),
}


def test_block_rows_of_a_slice_are_lanes():
    found = schedule_report(parse_module(BLOCKED), TARGET)
    assert found.rule == "slice_spmv"
    assert found.decisions[0].what == "the 16 block rows of a slice in vectors of 8"


@pytest.mark.parametrize("text", NOT_BLOCKED.values(), ids=NOT_BLOCKED)
def test_other_slices_of_block_rows_run_as_written(text):
    assert schedule_report(parse_module(text), TARGET).rule == ""


def test_every_rule_has_a_program_that_it_matches():
    assert {rule.name for rule in RULES} == {*SCRIPTS, *OF_SEVERAL_ITERATIONS, *WITHOUT_SCRIPT}
    for rule, name in SCRIPTS.items():
        module = specialize(parse_module(script(name)), SIZES.get(rule, {}))
        assert schedule_report(module, TARGET).rule == rule
