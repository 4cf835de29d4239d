"""Passes that treat nodes differently, by how these address elements, have a rule for each type of node."""

from __future__ import annotations

import pytest

from gossamer_ir.traversal.access_types import ACCESSES, INDEXED_NODES
from gossamer_ir.verify.stages.node_checks import RULES_BY_STAGE
from gossamer_lower.bounds_checks import access_checks
from gossamer_lower.buffers import lower_buffers
from gossamer_lower.iterations import lower_iterations

RULES = {
    "lower_iterations": (lower_iterations.ACCESS_RULES, "coordinate", INDEXED_NODES),
    "lower_buffers": (lower_buffers.ACCESS_RULES, "position", INDEXED_NODES),
    "access_checks": (access_checks.CHECK_RULES, "loop", ACCESSES),
}
"""The rules, the stage of the module, and the types of nodes that need a rule if the stage has them."""


@pytest.mark.parametrize(("rules", "stage", "kinds"), RULES.values(), ids=RULES)
def test_each_type_of_the_stage_has_a_rule(rules, stage, kinds):
    allowed = {*RULES_BY_STAGE[stage].exprs, *RULES_BY_STAGE[stage].stmts}
    assert rules.keys() == allowed & set(kinds)
