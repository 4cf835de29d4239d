"""`add_unit_loop`: insert a loop of one iteration around a loop or block."""

from __future__ import annotations

from gossamer_ir.core.build import ONE, ZERO
from gossamer_ir.nodes import For, Function
from gossamer_ir.traversal.names import namer_of
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.cursor.find import find_named
from gossamer_schedule.cursor.requirements import LOOP_STAGES
from gossamer_schedule.definition.change import Change
from gossamer_schedule.definition.primitive import primitive
from gossamer_schedule.made_names import unit_loop_name


@primitive(stages=LOOP_STAGES)
def add_unit_loop(root: Cursor[Function], name: str, *, function: str | None = None) -> Change:
    """Insert loop `<name>_unit`, which has one iteration, around a loop or block.

    The loop can be bound to a thread axis, or be the target of `compute_at`. By itself it has no effect on
    the generated code. The result's name is that of the loop.

    >>> from gossamer_testkit.examples import SCALE
    >>> from gossamer_testkit.show import body_text
    >>> print(body_text(SCALE))
    for i in T.serial(n):
        with T.block("scale"):
            vi = T.axis.spatial(n, i)
            Y[vi] = X[vi] * 2.0
    >>> print(body_text(add_unit_loop(SCALE, "scale").module))
    for i in T.serial(n):
        for scale_unit in T.serial(1):
            with T.block("scale"):
                vi = T.axis.spatial(n, i)
                Y[vi] = X[vi] * 2.0
    """
    cursor = find_named(root, name=name)

    unit = For(namer_of(root.function).fresh(unit_loop_name(name)), ZERO, ONE, (cursor.node,))

    return Change(cursor.replace_with((unit,)), (unit.var,))
