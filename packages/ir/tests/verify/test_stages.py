"""Each stage accepts exactly the node types that belong to it."""

from __future__ import annotations

import pytest

from gossamer_ir import nodes
from gossamer_ir.nodes import EXPRS, STMTS
from gossamer_ir.verify.stages.node_checks import RULES_BY_STAGE

ALL = ("coordinate", "position", "loop", "flat")
AFTER_COORDINATES = ("position", "loop", "flat")
VECTORS = ("loop", "flat")
ROWS = {
    **dict.fromkeys(("Const", "Var", "Unary", "Binary", "Compare", "Cast", "Reinterpret"), ALL),
    **dict.fromkeys(("Select", "IfThenElse", "Call", "Load"), ALL),
    "Combine": ("coordinate", "position", "loop"),
    **dict.fromkeys(("Store", "Let", "If", "Prefetch"), ALL),
    **dict.fromkeys(("For", "While", "Allocate", "VScale", "Guard"), AFTER_COORDINATES),
    **dict.fromkeys(("Search", "Block"), ("position", "loop")),
    **dict.fromkeys(("Ramp", "Broadcast", "LaneReduce", "TransposeReduce"), VECTORS),
    **dict.fromkeys(("ParallelFor", "Launch", "Atomic", "Barrier", "Shuffle"), ("flat",)),
    **dict.fromkeys(("AsyncCopy", "CommitGroup", "WaitGroup"), ("flat",)),
    "Iteration": ("coordinate",),
}


def test_every_kind_has_a_row():
    assert {kind.__name__ for kind in (*EXPRS, *STMTS)} == set(ROWS)


@pytest.mark.parametrize("kind", ROWS)
def test_a_kind_is_checked_at_its_stages_and_refused_at_the_others(kind):
    node = getattr(nodes, kind)
    holders = [
        name for name, stage in RULES_BY_STAGE.items() if node in {**stage.exprs, **stage.stmts}
    ]
    assert tuple(holders) == ROWS[kind]
