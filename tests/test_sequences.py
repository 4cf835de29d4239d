"""Random sequences of primitives: each primitive has a drawer, and what a sequence makes of a program is
what the program was."""

from __future__ import annotations

from gossamer_schedule.table import PRIMITIVES
from tests.generated.drawers import DRAWERS


def test_each_primitive_has_a_drawer():
    assert DRAWERS.keys() == {name for name in PRIMITIVES if not name.startswith("unsafe_")}
