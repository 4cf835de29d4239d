"""Look-ups of statements in schedules handle every statement type that has a body."""

from __future__ import annotations

from gossamer_ir.nodes import STMTS, Function
from gossamer_schedule.cursor.cursor_at import ADDRESSABLE_BODIES

HOLDING = ("tuple[Stmt, ...]", "tuple[Store, ...]")


def test_schedules_look_into_every_statement_that_holds_others():
    """Inits are excluded: their statements have no names."""
    fields = {
        kind: tuple(
            name for name, of in kind.__annotations__.items() if of in HOLDING and name != "init"
        )
        for kind in (Function, *STMTS)
    }
    assert {kind: names for kind, names in fields.items() if names} == ADDRESSABLE_BODIES
