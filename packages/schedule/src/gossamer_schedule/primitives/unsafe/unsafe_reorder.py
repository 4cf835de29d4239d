"""`unsafe_reorder`: permute the loops of a nest, without a proof that this is legal."""

from __future__ import annotations

from collections.abc import Sequence

from gossamer_ir.nodes import For, Function, Stmt
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.cursor.requirements import LOOP_STAGES
from gossamer_schedule.definition.change import Change
from gossamer_schedule.definition.primitive import primitive
from gossamer_schedule.definition.unsafe_mark import marked_unsafe
from gossamer_schedule.primitives.loops.reorder import reorder_loops
from gossamer_schedule.reductions.reassociation import with_reassociation_marks


@primitive(stages=LOOP_STAGES)
def unsafe_reorder(root: Cursor[Function], *loops: str, function: str | None = None) -> Change:
    """Reorder loops of one nest without a proof that their iterations may be exchanged.

    `loops` are those of `reorder`. The blocks inside are annotated `reassociates`, as the order of
    reductions may change, and the function is annotated `unsafe`. The result's names are those of the loops.

    Raises `ScheduleError`: as for `reorder`, except `.not_proved`.

    >>> from gossamer_testkit.examples import MATMUL
    >>> from gossamer_schedule.cursor.name_queries import get_loops
    >>> get_loops(MATMUL)
    ('i', 'j', 'l')
    >>> result = unsafe_reorder(MATMUL, "l", "i")
    >>> get_loops(result.module)
    ('l', 'j', 'i')
    >>> result.module.functions[0].annotations
    (('unsafe', 'reorder(l, i)'),)
    """
    return marked_unsafe(reorder_loops(root, loops, require=_reordered_body))


def _reordered_body(
    top: Cursor[object], chain: Sequence[For], moved: Sequence[For]
) -> tuple[Stmt, ...]:
    """Return the body of the nest, whose reductions may be combined in another order, without any check."""
    return with_reassociation_marks(chain[-1].body)
