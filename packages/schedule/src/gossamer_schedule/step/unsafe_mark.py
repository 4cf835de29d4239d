"""Primitives that take the user's word for what they cannot prove, and the mark that they leave.

The mark is the annotation `unsafe` of the function: which primitive was applied to what, in order. It
is printed, verified, and kept by every pass.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from msgspec.structs import replace

from gossamer_schedule.cursor.cursor import Cursor, with_function
from gossamer_schedule.result import Result

UNSAFE = "unsafe"
"""The annotation of a function whose schedule holds steps that nobody proved."""

Requirement: TypeAlias = Callable[[Cursor], None]
"""Refuses the loop at a cursor."""


def trusted(cursor: Cursor) -> None:
    """Requires nothing: the user vouches for it."""


def marked_result(result: Result) -> Result:
    """The result of an unsafe primitive, with the mark.

    >>> from gossamer_schedule import parallel
    >>> from gossamer_testkit.examples import SCALE
    >>> marked_result(parallel(SCALE, "i")).module.functions[0].annotations
    (('unsafe', 'parallel(i)'),)
    """
    module = result.module
    wanted = result.step.args.get("function") or module.entry
    function = next(found for found in module.functions if found.name == wanted)
    done = f"{result.step.op.removeprefix('unsafe_')}({', '.join(result.names)})"
    before = [str(value) for key, value in function.annotations if key == UNSAFE]
    others = tuple(item for item in function.annotations if item[0] != UNSAFE)
    mark = (UNSAFE, "; ".join((*before, done)))
    marked = replace(function, annotations=(*others, mark))
    return replace(result, module=with_function(module, function, marked))
