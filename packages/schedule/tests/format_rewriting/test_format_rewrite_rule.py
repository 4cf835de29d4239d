"""`FormatRewriteRule` and `format_decompose`: the published forms, and rules that are refused."""

from __future__ import annotations

import pytest
from refused import reason_of

from gossamer_ir.nodes import IndexMap
from gossamer_ir.script import parse_format, print_format, print_module
from gossamer_ir.verify import verify
from gossamer_schedule import FormatRewriteRule, format_decompose, replay
from gossamer_testkit.examples import SPMM_COORDINATE as SPMM

BSR = """
@T.prim_func
def bsr(
    a: T.handle, indptr: T.handle, indices: T.handle,
    mb: T.int32, nb: T.int32, nnzb: T.int32, block_size: T.int32,
) -> None:
    T.func_attr({"global_symbol": "main", "tir.noalias": True, "sparse_tir_level": 2})
    IO = T.dense_fixed(mb)
    JO = T.sparse_variable(IO, (nb, nnzb), (indptr, indices), "int32")
    II = T.dense_fixed(block_size)
    JI = T.dense_fixed(block_size)
    A = T.match_sparse_buffer(a, (IO, JO, II, JI), "float32")
    T.evaluate(0)
"""
WITH_MAP = """
@T.format
def bsr(
    a: T.handle, indptr: T.handle, indices: T.handle,
    mb: T.int32, nb: T.int32, nnzb: T.int32, block_size: T.int32,
) -> None:
    IO = T.sp.dense_fixed(mb)
    JO = T.sp.compressed_varied(IO, (nb, nnzb), (indptr, indices), "int32")
    II = T.sp.dense_fixed(block_size)
    JI = T.sp.dense_fixed(block_size)
    A = T.sp.match_buffer(a, (IO, JO, II, JI), "float32")
    T.sp.map(lambda io, jo, ii, ji: (io * block_size + ii, jo * block_size + ji))
"""
AXES = {"I": ["IO", "II"], "J": ["JO", "JI"]}
BEFORE, AFTER = ["I", "J"], ["IO", "JO", "II", "JI"]


def to_blocks(i, j, block_size):
    return i // block_size, j // block_size, i % block_size, j % block_size


def from_blocks(io, jo, ii, ji, block_size):
    return io * block_size + ii, jo * block_size + ji


def maps_with_side(side):
    """The maps as they were published: the size is a constant of Python."""
    return (lambda i, j: to_blocks(i, j, side)), (lambda *at: from_blocks(*at, side))


FORMS = {
    "with axes": (BSR, BEFORE, AFTER, AXES, to_blocks, from_blocks),
    "without axes": (BSR, AXES, to_blocks, from_blocks),
    "map in the description": (WITH_MAP,),
    "a description": (parse_format(WITH_MAP),),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_the_forms_of_a_rule_are_equal(form):
    rule = FormatRewriteRule("p", form[0], ["A"], *form[1:])
    assert rule.description == parse_format(WITH_MAP)
    assert parse_format(print_format(rule.description)) == rule.description


def test_arguments_by_keyword():
    rule = FormatRewriteRule(
        "p", BSR, ["A"], axes_before_rewrite=BEFORE, axes_after_rewrite=AFTER, axis_map=AXES,
        idx_map=to_blocks, inv_idx_map=from_blocks,
    )  # fmt: skip
    assert rule.description == parse_format(WITH_MAP)


def test_axes_after_may_be_in_another_order():
    rule = FormatRewriteRule(
        "p", BSR, ["A"], BEFORE, ["II", "IO", "JI", "JO"], AXES,
        lambda i, j: (i % 4, i // 4, j % 4, j // 4), lambda ii, io, ji, jo: (4 * io + ii, ji + jo * 4),
    )  # fmt: skip
    assert rule.description.map is not None
    assert rule.description.map.vars == ("io", "jo", "ii", "ji")


def test_rules_are_a_step_that_is_replayed():
    rules = [
        FormatRewriteRule("p", BSR, ["A"], AXES, *maps_with_side(4)),
        FormatRewriteRule("q", WITH_MAP, ["A"]),
    ]
    result = format_decompose(SPMM, rules)
    verify(result.module)
    assert result.names == ("rewrite_A_p", "rewrite_A_q", "csrmm_init", "csrmm_p", "csrmm_q")
    assert result.step.op == "decompose_format"
    assert replay(SPMM, (result.step,)) == result.module
    alone = format_decompose(SPMM, rules, include_format_rewrite_blks=False)
    assert alone.names == ("csrmm_init", "csrmm_p", "csrmm_q")


def test_blocks_beyond_the_tensor_are_skipped_without_a_shape():
    rule = FormatRewriteRule("p", BSR, ["A"], AXES, *maps_with_side(4))
    module = format_decompose(SPMM, [rule], include_format_rewrite_blks=False).module
    assert "if io_p * 4 + ii_p < m and jo_p * 4 + ji_p < n:" in print_module(module)


IDENTITY = (lambda i, j: (i, j), lambda i, j: (i, j))
CSR = BSR.replace("(IO, JO, II, JI)", "(IO, JO)")
TO_CSR = {"I": ["IO"], "J": ["JO"]}
WRONG = {
    "format: not a script": ("format_rewrite_rule.format", ("bsr",)),
    "format: not a format": ("format_rewrite_rule.format", (3,)),
    "signature: four arguments": ("format_rewrite_rule.signature", (BSR, AXES)),
    "signature: no inverse": ("format_rewrite_rule.signature", (BSR, AXES, to_blocks, None)),
    "signature: two maps": (
        "format_rewrite_rule.signature",
        (WITH_MAP, AXES, to_blocks, from_blocks),
    ),
    "axes: not those of the buffer": (
        "format_rewrite_rule.axes",
        (BSR, BEFORE, ["IO", "JO"], TO_CSR, *IDENTITY),
    ),
    "axes: not all mapped": (
        "format_rewrite_rule.axes",
        (BSR, {"I": ["IO"], "J": ["JO"]}, to_blocks, from_blocks),
    ),
    "axes: not those before": (
        "format_rewrite_rule.axes",
        (BSR, ["I"], AFTER, AXES, to_blocks, from_blocks),
    ),
    "axes: mapped to others": (
        "format_rewrite_rule.axes",
        (BSR, {"I": ["IO", "JI"], "J": ["JO", "II"]}, to_blocks, from_blocks),
    ),
    "map: not a function": ("format_rewrite_rule.map", (CSR, TO_CSR, "i, j", IDENTITY[1])),
    "map: too few parameters": (
        "format_rewrite_rule.map",
        (CSR, TO_CSR, lambda i: (i, i), IDENTITY[1]),
    ),
    "map: not a size": (
        "format_rewrite_rule.map",
        (CSR, TO_CSR, lambda i, j, size: (i, j), IDENTITY[1]),
    ),
    "map: too few results": ("format_rewrite_rule.map", (CSR, TO_CSR, lambda i, j: i, IDENTITY[1])),
    "map: not an index": (
        "format_rewrite_rule.map",
        (CSR, TO_CSR, lambda i, j: (i, "j"), IDENTITY[1]),
    ),
    "map: a condition": (
        "format_rewrite_rule.map",
        (CSR, TO_CSR, lambda i, j: (i if i else 0, j), IDENTITY[1]),
    ),
    "map: a division by zero": (
        "format_rewrite_rule.map",
        (CSR, TO_CSR, lambda i, j: (i // 0, j), IDENTITY[1]),
    ),
    "inverse": ("format_rewrite_rule.inverse", (CSR, TO_CSR, IDENTITY[0], lambda i, j: (j, i))),
    "inverse: of blocks": (
        "format_rewrite_rule.inverse",
        (BSR, AXES, to_blocks, lambda io, jo, ii, ji: (io * 4 + ii, jo * 4 + ji)),
    ),
}


@pytest.mark.parametrize(("reason", "arguments"), WRONG.values(), ids=WRONG)
def test_rules_that_are_refused(reason, arguments):
    form, *maps = arguments
    assert reason_of(FormatRewriteRule, "p", form, ["A"], *maps) == reason


def test_an_index_map_is_a_map():
    forward = IndexMap(("i", "j"), parse_format(WITH_MAP).map.results[:1])
    assert (
        reason_of(FormatRewriteRule, "p", CSR, ["A"], TO_CSR, forward, IDENTITY[1])
        == "format_rewrite_rule.map"
    )


def test_rules_of_other_buffers_are_refused():
    rules = [FormatRewriteRule("p", WITH_MAP, ["A"]), FormatRewriteRule("q", WITH_MAP, ["B"])]
    assert reason_of(format_decompose, SPMM, rules) == "format_decompose.buffers"
    other = FormatRewriteRule("p", BSR, ["A"],
                              {"J": ["IO", "II"], "I": ["JO", "JI"]}, to_blocks, from_blocks)  # fmt: skip
    assert reason_of(format_decompose, SPMM, [other]) == "format_decompose.axes"
    assert reason_of(format_decompose, SPMM, []) == "decompose_format.names"
