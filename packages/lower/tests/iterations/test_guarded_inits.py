"""Iterations whose init and body run under a condition: it becomes the predicate of the block."""

from __future__ import annotations

from gossamer_ir.nodes import Block, If
from gossamer_ir.script import parse_module
from gossamer_ir.traversal.walk import collect
from gossamer_lower import lower_iterations
from gossamer_testkit import script

TEXT = script("row_groups_spmm")


def block_of(text):
    (block,) = collect(Block, *lower_iterations(parse_module(text)).functions[0].body)
    return block


def kinds(block):
    return "".join(iterator.kind for iterator in block.iters)


def test_a_common_condition_is_the_predicate():
    block = block_of(TEXT)
    assert block.predicate is not None
    assert not collect(If, *block.init, *block.body)
    assert kinds(block) == "SRSS"


def test_conditions_that_differ_stay_in_the_body():
    block = block_of(TEXT.replace("< m:", "< n:", 1))
    assert block.predicate is None
    assert len(collect(If, *block.init, *block.body)) == 2


def test_a_condition_on_reductions_stays_in_the_body():
    """If rows may be repeated, an element is initialized for several groups."""
    block = block_of(TEXT.replace("    T.assume(distinct(ROWS))\n", ""))
    assert kinds(block) == "RRRS"
    assert block.predicate is None
