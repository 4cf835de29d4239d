"""The rule for groups of rows times dense: the programs that it recognizes, and the tiles that it chooses."""

from __future__ import annotations

import pytest

from gossamer_ir.interchange.records import Stats
from gossamer_ir.script import parse_module
from gossamer_ir.transform.specialize import specialize
from gossamer_machine import Machine
from gossamer_schedule.rules import schedule_report
from gossamer_schedule.rules.patterns.grouped_reduction import grouped_reduction
from gossamer_testkit import script

TARGET = Machine()
TEXT = script("row_groups_spmm")
GUARD = "        if T.int64(ROWS[g, r]) < m:\n            C[T.int64(ROWS[g, r]), k] = C"
INIT = TEXT[TEXT.index("        with T.init()") : TEXT.index(GUARD)]


def program(text=TEXT, *, height=3, features=40):
    sized = text.replace("(m + 2) // 3", f"(m + {height - 1}) // {height}")
    sized = sized.replace("fixed(3)", f"fixed({height})").replace(
        f"// {height} * 3", f"// {height} * {height}"
    )
    return specialize(parse_module(sized), {"feat_size": features} if features is not None else {})


@pytest.mark.parametrize("text", [TEXT, TEXT.replace(INIT, "")], ids=["stored", "added"])
def test_groups_are_recognized_with_their_sizes(text):
    pattern = grouped_reduction(program(text))
    assert (pattern.group, pattern.position, pattern.row, pattern.feature) == ("g", "j", "r", "k")
    assert (pattern.height, pattern.features, pattern.output) == (3, 40, "C_data")
    assert pattern.gather.operand == "B_data"
    assert pattern.is_initialized == (text is TEXT)
    assert "a row of C_data of its own" in pattern.text


OTHERS = {
    "rows may be repeated": TEXT.replace("    T.assume(distinct(ROWS))\n", ""),
    "rows may be negative": TEXT.replace("in_range(ROWS, 0,", "in_range(ROWS, -1,"),
    "rows may not exist": TEXT.replace("< m:", "< n:"),
    "an init of other rows": TEXT.replace("< m:", "< n:", 1),
    "another place of the row": TEXT.replace("ROWS[g, r]", "ROWS[g, r - r]"),
    "no reduction": TEXT.replace("C[T.int64(ROWS[g, r]), k] + A", "A"),
    "features that are not contiguous": TEXT.replace("B[j, k]", "B[k, j]").replace(
        "(N, K)", "(K, N)"
    ),
    "another order of axes": TEXT.replace("[G, J, R, K]", "[G, R, J, K]")
    .replace("SRSS", "SSRS")
    .replace("[g, j, r, k]:", "[g, r, j, k]:"),
}


@pytest.mark.parametrize("text", OTHERS.values(), ids=OTHERS)
def test_other_groups_are_left_to_other_rules(text):
    assert grouped_reduction(program(text)) is None


@pytest.mark.parametrize(("height", "features"), [(3, None), (3, 0), (9, 40)])
def test_unknown_numbers_of_features_and_high_groups_are_left_to_other_rules(height, features):
    assert schedule_report(program(height=height, features=features), TARGET).rule != "group_spmm"


# Vectors are aligned, so that there is one more than features fill.
TILES = [
    (1, 128, 1, 9), (1, 512, 3, 11), (2, 128, 1, 9), (3, 128, 3, 3), (4, 128, 3, 3), (6, 96, 2, 4),
    (8, 16, 1, 1),
]  # fmt: skip


@pytest.mark.parametrize(("height", "features", "tiles", "vectors"), TILES)
def test_a_tile_of_all_rows_of_a_group_fits_the_registers(height, features, tiles, vectors):
    report = schedule_report(program(height=height, features=features), TARGET)
    assert report.rule == "group_spmm"
    (tile,) = (decision for decision in report.decisions if decision.what.startswith("a tile of"))
    assert f"by {vectors} vector" in tile.what
    factors = [step.args["factors"] for step in tile.steps if step.op == "split"]
    outer = tuple(count for count in (tiles, vectors) if count > 1)
    assert factors == ([(*outer, 16)] if outer else [])


def ops(stats, text=TEXT, features=128):
    report = schedule_report(program(text, features=features), TARGET, stats)
    return {step.op for decision in report.decisions for step in decision.steps}


def test_rows_of_a_large_operand_are_prefetched_and_large_results_stored_around_the_caches():
    small = Stats(rows=1000, columns=1000, nnz=9000, longest_row=9, empty_rows=0)
    large = Stats(rows=100_000, columns=100_000, nnz=900_000, longest_row=9, empty_rows=0)
    assert {"align"} == ops(small) & {"align", "prefetch", "store_nontemporal"}
    assert {"prefetch", "store_nontemporal"} == ops(large) & {
        "align",
        "prefetch",
        "store_nontemporal",
    }
    added = ops(large, TEXT.replace(INIT, ""))
    assert {"prefetch"} == added & {"align", "prefetch", "store_nontemporal"}


@pytest.mark.parametrize(
    ("height", "features", "distances"),
    [(1, 32, [8]), (1, 128, [2]), (1, 256, []), (3, 128, [])],
)
def test_short_rows_of_a_result_in_the_caches_are_prefetched_in_groups_of_one_row(
    height, features, distances
):
    assert prefetched_results(30_000, height, features) == distances


def test_results_that_are_stored_around_the_caches_are_not_prefetched():
    assert prefetched_results(100_000, 1, 128) == []


def prefetched_results(rows, height, features):
    """Return the distances at which rows of the result are prefetched."""
    stats = Stats(rows=rows, columns=rows, nnz=9 * rows, longest_row=9, empty_rows=0)
    report = schedule_report(program(height=height, features=features), TARGET, stats)
    steps = [step for decision in report.decisions for step in decision.steps]
    ahead = [step.args for step in steps if step.op == "prefetch"]
    return [args["distance"] for args in ahead if args["buffer"] == "C_data"]
