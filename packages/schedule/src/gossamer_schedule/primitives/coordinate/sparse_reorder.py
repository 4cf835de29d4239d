"""`sparse_reorder`: the axes of a sparse iteration change places."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from gossamer_ir.interchange.records import Step
from gossamer_ir.nodes import (
    Annotations,
    AttachAxis,
    Axis,
    FuseAxes,
    Iteration,
    IterationAxis,
    Module,
)
from gossamer_schedule.cursor.cursor import Cursor
from gossamer_schedule.cursor.resolve import find_function, find_iteration, require_stage
from gossamer_schedule.dependence.coordinate_loops import as_loops, axes_of
from gossamer_schedule.errors import listing, schedule_error
from gossamer_schedule.motion.exchange import require_exchangeable
from gossamer_schedule.reductions.reassociation import REASSOCIATES
from gossamer_schedule.result import Result
from gossamer_schedule.step.primitive import primitive
from gossamer_schedule.step.recorded import step

_NAME = "sparse_reorder"


class _Item(msgspec.Struct, frozen=True):
    """One entry of an iteration's axis list, with its letters and variables."""

    axis: IterationAxis
    kinds: str
    vars: tuple[str, ...]


@primitive
def sparse_reorder(
    module: Module, iteration: str, *, order: tuple[str, ...], function: str | None = None
) -> Result:
    """Puts the axes of a sparse iteration into the order of the given iterator variables.

    Where the order of two reduction axes changes, the iteration is annotated `reassociates`.

    Raises `ScheduleError`: `schedule.sparse_reorder.order` (not each variable once), `.fused` (the
    variables of a fused group must stay together), `.dependence` (an axis before the one it
    depends on), `.not_proved` (points may not be exchanged),
    `.no_iteration`, `.no_function`, `.stage`.

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
    require_stage(module, _NAME, stages=("coordinate",))
    root = find_function(module, _NAME, function=function)
    cursor = find_iteration(root, iteration=iteration)

    _require_permutation(cursor, order)
    items = _require_groups(cursor, order)
    _require_parents_first(cursor, items)
    combined = _require_exchangeable(cursor, order)

    reordered = replace(
        cursor.node,
        axes=tuple(item.axis for item in items),
        kinds="".join(item.kinds for item in items),
        vars=tuple(name for item in items for name in item.vars),
        annotations=_annotations(cursor.node, order, is_reassociating=bool(combined)),
    )

    rewritten = cursor.replaced_by((reordered,)).module

    taken = step(iteration=iteration, order=tuple(order), function=function)
    return Result(rewritten, tuple(order), Step(_NAME, taken))


def _require_permutation(cursor: Cursor, order: Sequence[str]) -> None:
    if sorted(order) != sorted(cursor.node.vars):
        raise schedule_error(
            f"{_NAME}.order",
            f"'{', '.join(order)}' does not name each variable of iteration '{cursor.node.name}' "
            "once.",
            hint=listing("variables", cursor.node.vars),
            place=cursor.place,
        )


def _items(node: Iteration) -> Iterator[_Item]:
    start = 0
    for axis in node.axes:
        end = start + (len(axis.axes) if isinstance(axis, FuseAxes) else 1)
        yield _Item(axis, node.kinds[start:end], node.vars[start:end])
        start = end


def _require_groups(cursor: Cursor, order: Sequence[str]) -> list[_Item]:
    """The items in the new order."""
    by_first = {item.vars[0]: item for item in _items(cursor.node)}
    items: list[_Item] = []
    left = list(order)
    while left:
        item = by_first.get(left[0])
        if item is None or tuple(left[: len(item.vars)]) != item.vars:
            raise schedule_error(
                f"{_NAME}.fused",
                f"Variable '{left[0]}' of iteration '{cursor.node.name}' leaves its fused group.",
                hint="Fused axes stay together, in their order.",
            )
        items.append(item)
        del left[: len(item.vars)]
    return items


def _require_parents_first(cursor: Cursor, items: Sequence[_Item]) -> None:
    axes: Mapping[str, Axis] = {axis.name: axis for axis in cursor.function.axes}
    iterated = {name for item in items for name in axes_of(item.axis)}
    seen: set[str] = set()
    for item in items:
        for parent in _parents_of(item.axis, axes):
            if parent in iterated - seen - set(axes_of(item.axis)):
                raise schedule_error(
                    f"{_NAME}.dependence",
                    f"Axis '{axes_of(item.axis)[0]}' must come after axis '{parent}', on which it "
                    "depends.",
                )
        seen.update(axes_of(item.axis))


def _parents_of(item: IterationAxis, axes: Mapping[str, Axis]) -> Iterator[str]:
    if isinstance(item, AttachAxis):
        yield item.parent
        own = axes.get(axes[item.axis].parent or "")
        if own is not None and own.parent is not None:
            yield own.parent
        return
    for name in axes_of(item):
        axis = axes.get(name)
        if axis is not None and axis.parent is not None:
            yield axis.parent


def _require_exchangeable(cursor: Cursor, order: Sequence[str]) -> set[str]:
    """The buffers whose elements are combined in another order."""
    top, chain = as_loops(cursor)
    by_name = dict(zip(cursor.node.vars, chain, strict=True))
    moved = [by_name[name] for name in order]
    return require_exchangeable(top, chain, moved)


def _annotations(node: Iteration, order: Sequence[str], *, is_reassociating: bool) -> Annotations:
    reductions = [var for var, kind in zip(node.vars, node.kinds, strict=True) if kind == "R"]
    is_same = [var for var in order if var in reductions] == reductions
    is_same = is_same and not is_reassociating
    if is_same or (REASSOCIATES, True) in node.annotations:
        return node.annotations
    return (*node.annotations, (REASSOCIATES, True))
