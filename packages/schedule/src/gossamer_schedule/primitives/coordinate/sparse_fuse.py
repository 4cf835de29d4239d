"""`sparse_fuse`: fuse consecutive axes of a sparse iteration into one loop over their elements."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from msgspec.structs import replace

from gossamer_ir.core.iteration_axes import iterated_axes
from gossamer_ir.nodes import Block, Function, FuseAxes, Iteration, IterationAxis, OverAxis
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.cursor.find import find_iteration
from gossamer_schedule.definition.change import Change
from gossamer_schedule.definition.primitive import primitive
from gossamer_schedule.errors import listing, schedule_error


@primitive(stages=("coordinate",))
def sparse_fuse(
    root: Cursor[Function], iteration: str, *, axes: tuple[str, ...], function: str | None = None
) -> Change:
    """Fuse consecutive axes of a sparse iteration into one loop over the elements of the last axis.

    Each of `axes` is the child of the one before it. The elements that are visited and their order do not
    change. The loop can then be split into parts with equal numbers of elements. The result's names are
    the variables of the fused axes.

    Raises `ScheduleError` with a code `schedule.sparse_fuse.*`:

    * `.axes`: fewer than two, or not consecutive axes of the iteration that are not fused yet
    * `.chain`: an axis is not the child of the one before it

    >>> from gossamer_testkit.examples import SPMM_COORDINATE
    >>> from gossamer_testkit.show import body_text
    >>> print(body_text(SPMM_COORDINATE))
    with T.sp.iteration([I, J, K], "SRS", "csrmm") as [i, j, k]:
        with T.init():
            C[i, k] = 0.0
        C[i, k] = C[i, k] + A[i, j] * B[j, k]
    >>> print(body_text(sparse_fuse(SPMM_COORDINATE, "csrmm", axes=("I", "J")).module))
    with T.sp.iteration([T.sp.fuse(I, J), K], "SRS", "csrmm") as [i, j, k]:
        with T.init():
            C[i, k] = 0.0
        C[i, k] = C[i, k] + A[i, j] * B[j, k]
    """
    cursor = find_iteration(root, iteration=iteration)

    # Consecutive first: an axis that the iteration lacks is a mistake of another kind than a broken chain.
    start = _required_first_position(cursor, axes)
    _require_chain(cursor, axes)

    node = cursor.node
    items = (*node.axes[:start], FuseAxes(tuple(axes)), *node.axes[start + len(axes) :])
    fused = iterated_axes(node)[start : start + len(axes)]

    return Change(
        cursor.replace_with((replace(node, axes=items),)),
        tuple(name for item in fused for name in item.vars),
    )


def _required_first_position(cursor: Cursor[Iteration], axes: Sequence[str]) -> int:
    """Return the position of the first of the axes in the iteration's list; refuse others than two or more
    consecutive ones."""
    items: tuple[IterationAxis, ...] = cursor.node.axes
    group = tuple(OverAxis(name) for name in axes)
    for start in range(len(items)):
        if len(group) > 1 and items[start : start + len(group)] == group:
            return start
    raise schedule_error(
        "sparse_fuse.axes",
        f"'{', '.join(axes)}' does not name two or more consecutive axes of iteration "
        f"'{cursor.node.name}'.",
        hint=listing("axes", [item.axis for item in items if isinstance(item, OverAxis)]),
        place=cursor.place,
    )


def _require_chain(cursor: Cursor[Block | Iteration], axes: Sequence[str]) -> None:
    """Refuse an axis that is not the child of the one before it.

    The loop runs over the elements of the last axis. Only the chain of parents determines the elements of the
    other axes from these.
    """
    parents = {axis.name: axis.parent for axis in cursor.function.axes}
    for above, name in pairwise(axes):
        if parents[name] != above:
            raise schedule_error(
                "sparse_fuse.chain",
                f"Axis '{name}' is not a child of axis '{above}', so iteration '{cursor.node.name}' cannot "
                "fuse them.",
                hint="Fuse an axis with its parent.",
                place=cursor.place,
            )
