"""The rule for sparse times dense: the tiles of features, what is aligned, prefetched and stored around the
caches, and correct results. Several sums of a row and packed tiles are tested in `decisions`.
"""

from __future__ import annotations

import pytest
from rule_programs import CSR, DOT, NARROW, PRODUCT, TARGET, WIDE, as_lowered, machine, module_of

from gossamer_ir.interchange.records import Stats
from gossamer_ir.transform.specialize import specialize
from gossamer_schedule import replay
from gossamer_schedule.rules import default_schedule, schedule_report
from gossamer_schedule.rules.library.row_spmm import row_spmm
from gossamer_schedule.rules.schedule_rule import RuleContext
from gossamer_testkit.examples import SPMM, SPMM_COORDINATE

PROGRAM = CSR + PRODUCT
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


def test_the_target_is_named_where_it_decides():
    module = module_of(PROGRAM, f=256)
    tiles = {target: schedule_report(module, target).decisions[1].what for target in (WIDE, NARROW)}
    assert tiles[WIDE] == "features in 1 tile of 17 vectors of 16 lanes"
    assert tiles[NARROW] == "features in 8 tiles of 8 vectors of 4 lanes"


def product_steps(stats, *, target=WIDE, **sizes):
    schedule = default_schedule(module_of(PROGRAM, **sizes), target, stats)
    return {step.op: step.args for step in schedule.loop}


def with_caches(private, shared):
    return machine(f"vector_bits=512,l2={private},l3={shared}")


@pytest.mark.parametrize("shared", [16 << 20, 64 << 20])
def test_vectors_are_aligned_to_rows_of_an_operand_that_stays_in_the_shared_cache(shared):
    def is_aligned(features, size):
        stats = Stats(100, size // (4 * features), 900, 50, 0)
        return "align" in product_steps(stats, target=with_caches(1 << 20, shared), f=features)

    aligned = {features: is_aligned(features, shared // 8) for features in (8, 16, 40, 64)}
    assert aligned == {8: False, 16: True, 40: False, 64: True}
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


def report(*, target=WIDE, stats=None, **sizes):
    return schedule_report(module_of(PROGRAM, **sizes), target, stats)


@pytest.mark.parametrize(
    ("target", "features", "tiles"),
    [
        (WIDE, 1, "the one feature of a row i in a register"),
        (WIDE, 7, "features in 1 tile of 1 vector of 8 lanes"),
        (WIDE, 40, "features in 1 tile of 3 vectors of 16 lanes"),
        (NARROW, 40, "features in 2 tiles of 5 vectors of 4 lanes"),
        (WIDE, None, "features in tiles of 4 vectors of 16 lanes"),
    ],
)
def test_features_are_split_into_tiles_that_fit_the_registers(target, features, tiles):
    rule_report = report(target=target, **({} if features is None else {"f": features}))
    assert rule_report.rule == "row_spmm"
    assert tiles in [decision.what for decision in rule_report.decisions]


OTHERS = {
    "no features": CSR + DOT,
    "an update that is no reduction": PROGRAM.replace("C[i, k] + A", "A"),
    "zero features": PROGRAM.replace("fixed(f)", "fixed(0)"),
    "two iterations": PROGRAM + PRODUCT[PRODUCT.index("    with") :].replace("product", "again"),
}


@pytest.mark.parametrize("text", OTHERS.values(), ids=OTHERS)
def test_other_programs_are_not_matched(text):
    assert row_spmm(module_of(text)) is None


def test_results_of_a_sibling_are_not_stored_around_the_caches():
    large = Stats(rows=10**6, columns=100, nnz=10**7, longest_row=50, empty_rows=0)
    for is_sibling in (False, True):
        context = RuleContext(large, is_sibling=is_sibling)
        rule_report = row_spmm(module_of(PROGRAM, f=128), context)
        ops = {step.op for decision in rule_report.decisions for step in decision.steps}
        assert ("store_nontemporal" in ops) != is_sibling


SHORT = Stats(rows=5, columns=4, nnz=10, longest_row=4, empty_rows=2)
LARGE = Stats(rows=10**6, columns=10**6, nnz=10**8, longest_row=10**4, empty_rows=0)


@pytest.mark.parametrize("stats", [None, SHORT, LARGE], ids=["unknown", "short", "large"])
@pytest.mark.parametrize("target", [WIDE, NARROW], ids=["wide", "narrow"])
@pytest.mark.parametrize("features", [1, 7, 16, 40, 64, 200, None])
def test_the_schedule_computes_the_product(require_spmm, features, target, stats):
    sizes = [{} if features is None else {name: features} for name in ("width", "K")]
    rule_report = schedule_report(specialize(SPMM_COORDINATE, sizes[0]), target, stats)
    assert rule_report.rule == "row_spmm"
    scheduled = replay(as_lowered(specialize(SPMM, sizes[1])), rule_report.schedule.loop)
    for rows, columns in ((5, 4), (0, 3), (1, 9)):
        require_spmm(scheduled, features or 21, rows=rows, columns=columns)
