"""`unannotate`: remove an annotation from a loop, block or iteration."""

from __future__ import annotations

from gossamer_ir.core.annotations import ANNOTATIONS, without_annotation
from gossamer_ir.nodes import STAGES, Function
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.cursor.find import find_named
from gossamer_schedule.definition.change import Change
from gossamer_schedule.definition.primitive import primitive
from gossamer_schedule.errors import listing, schedule_error


@primitive(stages=STAGES)
def unannotate(
    root: Cursor[Function], name: str, *, key: str, function: str | None = None
) -> Change:
    """Remove the annotation `key` from a loop, block or iteration. The result's name is `name`.

    Raises `ScheduleError` with a code `schedule.unannotate.*`:

    * `.no_key`: there is no such annotation
    * `.needed`: the program would be wrong without it

    >>> from gossamer_schedule import annotate
    >>> from gossamer_testkit.examples import SCALE
    >>> from gossamer_testkit.show import body_text
    >>> marked = annotate(SCALE, "scale", key="origin", value=1).module
    >>> print(body_text(marked))
    for i in T.serial(n):
        with T.block("scale"):
            vi = T.axis.spatial(n, i)
            T.block_attr({"origin": 1})
            Y[vi] = X[vi] * 2.0
    >>> unannotate(marked, "scale", key="origin").module == SCALE
    True
    """
    cursor = find_named(root, name=name)

    keys = [name_of_annotation for name_of_annotation, _ in cursor.node.annotations]
    if key not in keys:
        raise schedule_error(
            "unannotate.no_key",
            f"'{name}' has no annotation '{key}'.",
            hint=listing("annotations", keys),
        )

    records = ANNOTATIONS[key].records if key in ANNOTATIONS else None
    if records is not None:
        raise schedule_error(
            "unannotate.needed",
            records.format(name=name),
            hint="Remove the step that wrote the annotation from the schedule.",
            place=cursor.place,
        )

    return Change(cursor.replace_with((without_annotation(cursor.node, key),)), (name,))
