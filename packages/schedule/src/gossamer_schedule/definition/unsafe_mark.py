"""The annotation of functions to which unsafe primitives were applied.

Unsafe primitives skip a proof that the user guarantees. The annotation `unsafe` of the function lists them in
order, with the names that they were applied to. It is printed, verified, and kept by every pass.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from msgspec.structs import replace

from gossamer_ir.core.annotations import UNSAFE, without_annotation
from gossamer_ir.nodes import For
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.definition.change import Change

Requirement: TypeAlias = Callable[[Cursor[For]], None]
"""A check that raises an error if the loop at a cursor is not proved to be legal."""


def require_nothing(cursor: Cursor[object]) -> None:
    """Require nothing: the user guarantees that the step is legal."""


def marked_unsafe(change: Change) -> Change:
    """Return the change of an unsafe primitive, with the annotation.

    >>> from gossamer_schedule.cursor.cursor_at import cursor_at
    >>> from gossamer_testkit.examples import SCALE
    >>> root = cursor_at(SCALE, SCALE.functions[0], primitive="unsafe_parallel")
    >>> marked_unsafe(Change(root, ("i",))).root.function.annotations
    (('unsafe', 'parallel(i)'),)
    """
    root, function = change.root, change.root.function
    step = f"{root.primitive.removeprefix('unsafe_')}({', '.join(change.names)})"
    before = [str(value) for key, value in function.annotations if key == UNSAFE]
    others = without_annotation(function, UNSAFE).annotations
    mark = (UNSAFE, "; ".join((*before, step)))
    marked = replace(function, annotations=(*others, mark))
    return replace(change, root=root.with_function(marked))
