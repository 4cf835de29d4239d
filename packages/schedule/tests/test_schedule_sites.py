"""No kind of statement that holds others is forgotten where schedules look for statements."""

from __future__ import annotations

from gossamer_ir.nodes import STATEMENTS, Function
from gossamer_schedule.sites import BODIES

HOLDING = ("tuple[Stmt, ...]", "tuple[Store, ...]")


def test_schedules_look_into_every_statement_that_holds_others():
    """But not into inits, whose statements have no names."""
    fields = {
        kind: tuple(
            name for name, of in kind.__annotations__.items() if of in HOLDING and name != "init"
        )
        for kind in (Function, *STATEMENTS)
    }
    assert {kind: names for kind, names in fields.items() if names} == BODIES
