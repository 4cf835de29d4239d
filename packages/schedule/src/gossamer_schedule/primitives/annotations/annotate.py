"""`annotate`: attach a key and a value to a loop, block or iteration."""

from __future__ import annotations

from msgspec.structs import replace

from gossamer_ir.core.annotations import ANNOTATIONS, without_annotation
from gossamer_ir.nodes import STAGES, Function
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.cursor.find import find_named
from gossamer_schedule.definition.change import Change
from gossamer_schedule.definition.primitive import primitive
from gossamer_schedule.errors import schedule_error


@primitive(stages=STAGES)
def annotate(
    root: Cursor[Function],
    name: str,
    *,
    key: str,
    value: bool | int | str,
    function: str | None = None,
) -> Change:
    """Attach an annotation to a loop, block or iteration.

    `value` is a bool, an int or a text. It replaces the value that `key` already has there. The annotation
    is kept for passes and readers, and does not change what the program computes. The result's name is
    `name`.

    Raises `ScheduleError` with a code `schedule.annotate.*`:

    * `.reserved`: a primitive writes that key
    * `.refused`: the annotation would have no effect

    >>> from gossamer_testkit.examples import SCALE
    >>> from gossamer_testkit.show import body_text
    >>> print(body_text(SCALE))
    for i in T.serial(n):
        with T.block("scale"):
            vi = T.axis.spatial(n, i)
            Y[vi] = X[vi] * 2.0
    >>> print(body_text(annotate(SCALE, "i", key="origin", value="rows").module))
    for i in T.serial(n, annotations={"origin": "rows"}):
        with T.block("scale"):
            vi = T.axis.spatial(n, i)
            Y[vi] = X[vi] * 2.0
    """
    cursor = find_named(root, name=name)

    kind = ANNOTATIONS.get(key)
    if kind is not None and kind.writers is not None:
        raise schedule_error(
            "annotate.reserved",
            f"The annotation '{key}' is reserved for primitives.",
            hint=f"It is written by {kind.writers}.",
        )
    if kind is not None and kind.elsewhere is not None:
        raise schedule_error(
            "annotate.refused",
            f"The annotation '{key}' is not supported.",
            hint=kind.elsewhere,
        )

    others = without_annotation(cursor.node, key).annotations
    marked = replace(cursor.node, annotations=(*others, (key, value)))

    return Change(cursor.replace_with((marked,)), (name,))
