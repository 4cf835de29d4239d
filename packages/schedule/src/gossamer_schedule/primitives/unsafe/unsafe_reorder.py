"""`unsafe_reorder`: loops change places on the user's word."""

from __future__ import annotations

from collections.abc import Sequence

from gossamer_ir.nodes import For, Module, Stmt
from gossamer_schedule.cursor.cursor import Cursor
from gossamer_schedule.primitives.loops.reorder import reorder_loops
from gossamer_schedule.reductions.reassociation import reassociating
from gossamer_schedule.result import Result
from gossamer_schedule.step.primitive import primitive
from gossamer_schedule.step.unsafe_mark import marked_result


@primitive
def unsafe_reorder(module: Module, *loops: str, function: str | None = None) -> Result:
    """As `reorder`, without the proof that iterations may be exchanged. The function is annotated
    `unsafe`.

    Raises `ScheduleError`: as `reorder`, but for `.not_proved`.

    >>> from gossamer_testkit.examples import MATMUL
    >>> from gossamer_schedule.cursor.lookups import get_loops
    >>> get_loops(MATMUL)
    ('i', 'j', 'l')
    >>> result = unsafe_reorder(MATMUL, "l", "i")
    >>> get_loops(result.module)
    ('l', 'j', 'i')
    >>> result.module.functions[0].annotations
    (('unsafe', 'reorder(l, i)'),)
    """
    result = reorder_loops(module, loops, function=function, op="unsafe_reorder", require=_trusted)
    return marked_result(result)


def _trusted(top: Cursor, chain: Sequence[For], moved: Sequence[For]) -> tuple[Stmt, ...]:
    """Exchanges whatever it is; reductions are then combined in another order."""
    return reassociating(chain[-1].body)
