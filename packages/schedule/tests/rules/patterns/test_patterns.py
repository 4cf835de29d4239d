"""The patterns that are found in scripts, with names of the loop stage, and in no others."""

from __future__ import annotations

import pytest

from gossamer_ir.script import parse_module
from gossamer_ir.transform.specialize import specialize
from gossamer_schedule.rules.patterns.block_reduction import block_reduction
from gossamer_schedule.rules.patterns.dense_assignment import dense_assignment
from gossamer_schedule.rules.patterns.elementwise import elementwise_pattern
from gossamer_schedule.rules.patterns.feature_updates import feature_updates
from gossamer_schedule.rules.patterns.grouped_reduction import grouped_reduction
from gossamer_schedule.rules.patterns.row_reduction import row_reduction
from gossamer_schedule.rules.patterns.sampled_products import sampled_products
from gossamer_schedule.rules.patterns.sliced_reduction import sliced_reduction
from gossamer_schedule.rules.patterns.tiled_reduction import tiled_reduction
from gossamer_testkit import script

PATTERNS = {
    row_reduction: "csr_spmm",
    block_reduction: "bsr_spmm",
    sampled_products: "sddmm",
    tiled_reduction: "tiled_csr_spmm",
    sliced_reduction: "sell_spmv_of_distinct_rows",
    grouped_reduction: "row_groups_spmm",
    elementwise_pattern: "csr_scaled",
}
"""A script that has each pattern."""


def module_of(name):
    module = parse_module(script(name))
    names = {param.name for param in module.functions[0].params}
    return specialize(module, {"feat_size": 40} if "feat_size" in names else {})


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("name", PATTERNS.values())
def test_each_script_has_one_pattern(pattern, name):
    assert (pattern(module_of(name)) is not None) == (PATTERNS[pattern] == name)


@pytest.mark.parametrize(
    ("pattern", "name", "fields"),
    [
        (
            row_reduction,
            "csr_spmm",
            {"row": "i", "position": "j", "feature": "k", "features": 40, "output": "C_data",
             "before": "T.int64(J_indptr[i])", "width": None, "is_regular": True,
             "is_contiguous": False},
        ),
        (
            row_reduction,
            "csr_reduce",
            {"row": "i", "position": "j", "feature": None, "is_contiguous": True},
        ),
        (
            row_reduction,
            "ell_spmm",
            {"row": "i", "position": "j", "width": None},
        ),
        (
            block_reduction,
            "bsr_spmm",
            {"row": "i", "position": "j", "inner_row": "bi", "inner_position": "bj",
             "feature": "f", "features": 40, "operand": "B_data", "operand_ndim": 3,
             "counts_rows": False},
        ),
        (
            sampled_products,
            "sddmm",
            {"row": "i", "position": "j", "feature": "k", "is_regular": True,
             "is_padded": False},
        ),
        (elementwise_pattern, "csr_scaled", {"row": "i", "position": "j"}),
    ],
)  # fmt: skip
def test_patterns_have_the_names_of_the_loop_stage(pattern, name, fields):
    match = pattern(module_of(name))
    assert {field: getattr(match, field) for field in fields} == fields


UPDATES = """
@T.prim_func
def program(a: T.handle, b: T.handle, c: T.handle, p: T.handle, q: T.handle,
            m: T.int64, n: T.int64, nnz: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    J = T.sp.dense_fixed(n)
    I = T.sp.compressed_varied(J, (m, nnz), (p, q), "int32")
    R = T.sp.dense_fixed(m)
    K = T.sp.dense_fixed(8)
    A = T.sp.match_buffer(a, (J, I), "float32")
    B = T.sp.match_buffer(b, (J, K), "float32")
    C = T.sp.match_buffer(c, (R, K), "float32")
    with T.sp.iteration([J, I, K], "RSS", "update") as [j, i, k]:
        C[i, k] = C[i, k] + A[j, i] * B[j, k]
"""
ASSIGNED = """
@T.prim_func
def program(c: T.handle, m: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    R = T.sp.dense_fixed(m)
    K = T.sp.dense_fixed(8)
    C = T.sp.match_buffer(c, (R, K), "float32")
    with T.sp.iteration([R, K], "SS", "init") as [r, k]:
        C[r, k] = 0.0
"""


def test_columns_of_a_matrix_update_rows_of_features():
    match = feature_updates(parse_module(UPDATES))
    assert (match.outer, match.reduction, match.features) == (("j", "i"), None, 8)
    assert dense_assignment(parse_module(UPDATES)) is None


def test_an_assignment_over_dense_axes_has_rows_and_contiguous_features():
    match = dense_assignment(parse_module(ASSIGNED))
    assert (match.row, match.feature, match.features) == ("r", "k", 8)
    assert feature_updates(parse_module(ASSIGNED)) is None
