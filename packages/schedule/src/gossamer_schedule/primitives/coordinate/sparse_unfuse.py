"""`sparse_unfuse`: iterate fused axes of a sparse iteration one by one again."""

from __future__ import annotations

from msgspec.structs import replace

from gossamer_ir.core.iteration_axes import iterated_axes
from gossamer_ir.nodes import Function, FuseAxes, Iteration, OverAxis
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.cursor.find import find_iteration
from gossamer_schedule.definition.change import Change
from gossamer_schedule.definition.primitive import primitive
from gossamer_schedule.errors import listing, schedule_error


@primitive(stages=("coordinate",))
def sparse_unfuse(
    root: Cursor[Function], iteration: str, *, axes: tuple[str, ...], function: str | None = None
) -> Change:
    """Replace a fused group of axes in a sparse iteration by the single axes: the inverse of `sparse_fuse`.

    `axes` are all axes of a group that `sparse_fuse` or a `T.sp.fuse` of the program made. The elements
    that are visited and their order do not change. The positions of an element's ancestors are then loop
    variables and need no search. The result's names are the variables of the axes.

    Raises `ScheduleError` with a code `schedule.sparse_unfuse.*`:

    * `.axes`: the iteration has no such fused group

    >>> from gossamer_testkit.examples import SPMM_COORDINATE
    >>> from gossamer_schedule.primitives.coordinate.sparse_fuse import sparse_fuse
    >>> from gossamer_testkit.show import body_text
    >>> fused = sparse_fuse(SPMM_COORDINATE, "csrmm", axes=("I", "J")).module
    >>> print(body_text(fused))
    with T.sp.iteration([T.sp.fuse(I, J), K], "SRS", "csrmm") as [i, j, k]:
        with T.init():
            C[i, k] = 0.0
        C[i, k] = C[i, k] + A[i, j] * B[j, k]
    >>> print(body_text(sparse_unfuse(fused, "csrmm", axes=("I", "J")).module))
    with T.sp.iteration([I, J, K], "SRS", "csrmm") as [i, j, k]:
        with T.init():
            C[i, k] = 0.0
        C[i, k] = C[i, k] + A[i, j] * B[j, k]
    """
    cursor = find_iteration(root, iteration=iteration)

    position = _required_group_position(cursor, axes)

    node = cursor.node
    single = tuple(OverAxis(name) for name in axes)
    items = (*node.axes[:position], *single, *node.axes[position + 1 :])

    return Change(
        cursor.replace_with((replace(node, axes=items),)), iterated_axes(node)[position].vars
    )


def _required_group_position(cursor: Cursor[Iteration], axes: tuple[str, ...]) -> int:
    """Return the position of the fused group in the iteration's list; refuse axes that are not a group."""
    node = cursor.node
    group = FuseAxes(tuple(axes))
    if group in node.axes:
        return node.axes.index(group)
    fused = [", ".join(item.axes) for item in node.axes if isinstance(item, FuseAxes)]
    raise schedule_error(
        "sparse_unfuse.axes",
        f"'{', '.join(axes)}' is not a fused group of iteration '{node.name}'.",
        hint=listing("fused groups", fused),
        place=cursor.place,
    )
