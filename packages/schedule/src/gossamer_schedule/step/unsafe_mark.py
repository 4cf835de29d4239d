"""The annotation of functions to which unsafe primitives were applied.

Unsafe primitives skip a proof that the user guarantees. The annotation `unsafe` of the function lists them in
order, with the names that they were applied to. It is printed, verified, and kept by every pass.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from msgspec.structs import replace

from gossamer_schedule.cursor.cursor import Cursor, with_function
from gossamer_schedule.result import Result

UNSAFE = "unsafe"
"""The key of the annotation of functions with unproved steps."""

Requirement: TypeAlias = Callable[[Cursor], None]
"""A check that raises an error if the loop at a cursor is not proved to be legal."""


def trusted(cursor: Cursor) -> None:
    """Require nothing: the user guarantees that the step is legal."""


def marked_result(result: Result) -> Result:
    """Return the result of an unsafe primitive, with the annotation.

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
