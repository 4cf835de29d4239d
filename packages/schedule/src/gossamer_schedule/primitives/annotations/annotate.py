"""`annotate`: attach a key and a value to a loop, block or iteration."""

from __future__ import annotations

from msgspec.structs import replace

from gossamer_ir.analysis.atomic_accumulation import ATOMIC
from gossamer_ir.analysis.software_pipelining import PIPELINE
from gossamer_ir.nodes import STAGES
from gossamer_ir.verify.statements.statements import UNSUPPORTED_ANNOTATIONS
from gossamer_schedule.cursor.cursor import Cursor
from gossamer_schedule.cursor.resolve import find_named
from gossamer_schedule.definition.change import Change
from gossamer_schedule.definition.primitive import primitive
from gossamer_schedule.definition.unsafe_mark import UNSAFE_KEY
from gossamer_schedule.errors import schedule_error
from gossamer_schedule.reductions.reassociation import REASSOCIATES
from gossamer_schedule.tensorization.intrinsic import INTRINSIC

RESERVED = {
    REASSOCIATES: "reorder or vectorize",
    "rest": "vectorize",
    PIPELINE: "pipeline",
    INTRINSIC: "tensorize",
    ATOMIC: "parallel",
    UNSAFE_KEY: "unsafe_parallel, unsafe_reorder or unsafe_vectorize",
}
"""Keys that only primitives write, with the names of these primitives.

The annotations change how a program is lowered, or record what was not proved."""


@primitive(stages=STAGES)
def annotate(
    root: Cursor, name: str, *, key: str, value: bool | int | str, function: str | None = None
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

    if key in RESERVED:
        raise schedule_error(
            "annotate.reserved",
            f"The annotation '{key}' is reserved for primitives.",
            hint=f"It is written by {RESERVED[key]}.",
        )
    if key in UNSUPPORTED_ANNOTATIONS:
        raise schedule_error(
            "annotate.refused",
            f"The annotation '{key}' is not supported.",
            hint=UNSUPPORTED_ANNOTATIONS[key],
        )

    others = tuple(item for item in cursor.node.annotations if item[0] != key)
    marked = replace(cursor.node, annotations=(*others, (key, value)))

    return Change(cursor.replaced_by((marked,)), (name,))
