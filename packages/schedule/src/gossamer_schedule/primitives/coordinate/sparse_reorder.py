"""`sparse_reorder`: permute the axes of a sparse iteration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from gossamer_ir.core.annotations import REASSOCIATES
from gossamer_ir.core.axis_kinds import parent_value
from gossamer_ir.core.iteration_axes import IteratedAxis, attachment_of, axis_names, iterated_axes
from gossamer_ir.nodes import Annotations, Axis, Function, Iteration, IterationAxis
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.cursor.find import find_iteration
from gossamer_schedule.definition.change import Change
from gossamer_schedule.definition.primitive import primitive
from gossamer_schedule.errors import listing, schedule_error
from gossamer_schedule.legality.coordinate_loops import loops_over_coordinates
from gossamer_schedule.motion.exchange import required_exchange
from gossamer_support.items_by_name import items_by_name


@primitive(stages=("coordinate",))
def sparse_reorder(
    root: Cursor[Function], iteration: str, *, order: tuple[str, ...], function: str | None = None
) -> Change:
    """Reorder the axes of a sparse iteration by its variables.

    `order` names each variable once, outermost first. Fused axes stay together in their order, and an
    axis stays inside the axes that it depends on. If the order in which a reduction combines its terms
    changes, the iteration is annotated `reassociates`. The result's names are the variables in their new
    order.

    Raises `ScheduleError` with a code `schedule.sparse_reorder.*`:

    * `.order`: not each variable once
    * `.fused`: a fused group is separated
    * `.dependence`: an axis is outside of one that it depends on
    * `.not_proved`: points may not be exchanged

    >>> from gossamer_testkit.examples import SPMM_COORDINATE
    >>> from gossamer_testkit.show import body_text
    >>> print(body_text(SPMM_COORDINATE))
    with T.sp.iteration([I, J, K], "SRS", "csrmm") as [i, j, k]:
        with T.init():
            C[i, k] = 0.0
        C[i, k] = C[i, k] + A[i, j] * B[j, k]
    >>> reordered = sparse_reorder(SPMM_COORDINATE, "csrmm", order=("k", "i", "j"))
    >>> print(body_text(reordered.module))
    with T.sp.iteration([K, I, J], "SSR", "csrmm") as [k, i, j]:
        with T.init():
            C[i, k] = 0.0
        C[i, k] = C[i, k] + A[i, j] * B[j, k]
    """
    cursor = find_iteration(root, iteration=iteration)

    _require_permutation(cursor, order)
    items = _required_axes(cursor, order)
    _require_parents_first(cursor, items)
    reassociated = _required_exchange(cursor, order)

    reordered = replace(
        cursor.node,
        axes=tuple(item.axis for item in items),
        kinds="".join(item.kinds for item in items),
        vars=tuple(name for item in items for name in item.vars),
        annotations=_reordered_annotations(cursor.node, order, is_reassociating=bool(reassociated)),
    )

    return Change(cursor.replace_with((reordered,)), tuple(order))


def _require_permutation(cursor: Cursor[Iteration], order: Sequence[str]) -> None:
    """Refuse an order that leaves out a variable, which the body may use, or repeats one, whose axis would be
    visited again."""
    if sorted(order) != sorted(cursor.node.vars):
        raise schedule_error(
            "sparse_reorder.order",
            f"'{', '.join(order)}' does not name each variable of iteration '{cursor.node.name}' "
            "once.",
            hint=listing("variables", cursor.node.vars),
            place=cursor.place,
        )


def _required_axes(cursor: Cursor[Iteration], order: Sequence[str]) -> list[IteratedAxis]:
    """Return the axes in the new order; refuse an order that separates a fused group."""
    by_first = {item.vars[0]: item for item in iterated_axes(cursor.node)}
    items: list[IteratedAxis] = []
    remaining = list(order)
    while remaining:
        item = by_first.get(remaining[0])
        if item is None or tuple(remaining[: len(item.vars)]) != item.vars:
            raise schedule_error(
                "sparse_reorder.fused",
                f"Variable '{remaining[0]}' of iteration '{cursor.node.name}' would leave its fused group.",
                hint="Keep fused axes together, in their order.",
            )
        items.append(item)
        del remaining[: len(item.vars)]
    return items


def _require_parents_first(cursor: Cursor[object], items: Sequence[IteratedAxis]) -> None:
    """Refuse an axis outside of its parent, whose elements select the fibers of the axis."""
    axes: Mapping[str, Axis] = items_by_name(cursor.function.axes)
    iterated = {name for item in items for name in axis_names(item.axis)}
    seen: set[str] = set()
    for item in items:
        for parent in _parents_of(item.axis, axes):
            if parent in iterated - seen - set(axis_names(item.axis)):
                raise schedule_error(
                    "sparse_reorder.dependence",
                    f"Axis '{axis_names(item.axis)[0]}' must come after axis '{parent}', on which it "
                    "depends.",
                )
        seen.update(axis_names(item.axis))


def _parents_of(item: IterationAxis, by_name: Mapping[str, Axis]) -> Iterator[str]:
    """Yield the axes on which an iterated axis depends: the parents of its axes, or of an attached axis."""
    selecting = attachment_of(item)
    for name in axis_names(item):
        axis = by_name.get(name)
        if selecting is not None and axis is not None:
            yield selecting
            axis = parent_value(axis, by_name)
        if axis is not None and axis.parent is not None:
            yield axis.parent


def _required_exchange(cursor: Cursor[Iteration], order: Sequence[str]) -> set[str]:
    """Return the buffers whose elements are combined in another order; refuse an illegal exchange."""
    top, chain = loops_over_coordinates(cursor)
    by_name = dict(zip(cursor.node.vars, chain, strict=True))
    moved = [by_name[name] for name in order]
    return required_exchange(top, chain, moved)


def _reordered_annotations(
    node: Iteration, order: Sequence[str], *, is_reassociating: bool
) -> Annotations:
    # A new order of the reduction axes alone changes the order in which terms are combined.
    reductions = [var for var, kind in zip(node.vars, node.kinds, strict=True) if kind == "R"]
    is_same_order = [var for var in order if var in reductions] == reductions
    if (is_same_order and not is_reassociating) or (REASSOCIATES, True) in node.annotations:
        return node.annotations
    return (*node.annotations, (REASSOCIATES, True))
