"""Windows of a buffer's elements that slide with the iterations of a loop."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec
from msgspec.structs import replace

from gossamer_ir.analysis.accesses.linear_form import LinearForm, form_of
from gossamer_ir.analysis.bounds.loops_by_name import loops_of
from gossamer_ir.analysis.invariants import changing_buffers
from gossamer_ir.arith.affine import ZERO_FORM
from gossamer_ir.dependence.mixed_radix import (
    count_of_values,
    digits_of,
    lowest_loops,
    without_loop_terms,
)
from gossamer_ir.nodes import Block, BlockIter, Expr, For, Store, Var
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.substitute import resolve
from gossamer_ir.traversal.walk import collect
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.cursor.variable_values import values_at
from gossamer_schedule.errors import schedule_error


class SlidingWindow(msgspec.Struct, frozen=True):
    """The elements that one iteration of a loop computes along dimension `dimension` of a buffer.

    Iterator `var` runs over `width` elements, the first of which is `base`. In the next iteration of the
    loop, `base` is larger by `step`.
    """

    dimension: int
    var: str
    base: Expr
    width: int
    step: int


def required_window(
    cursor: Cursor[Block], window_loop: Cursor[For], own_loops: tuple[For, ...], *, buffer_name: str
) -> SlidingWindow:
    """Return the window that a block computes in each iteration of `window_loop`.

    `own_loops` are the loops around the block inside `window_loop`.

    Raises `.window` and `.overlap`.
    """
    window = next(_candidate_windows(cursor, window_loop, own_loops, buffer_name=buffer_name), None)
    if window is None or _depends_otherwise(cursor, window_loop, own_loops, window):
        raise schedule_error(
            f"{cursor.primitive}.window",
            f"Iterations of loop '{window_loop.node.var}' do not compute windows of '{buffer_name}' "
            "with a constant "
            "width and a constant step.",
            hint="Give the loops of the block constant extents, and leave them serial.",
        )
    # Nothing would be reused, so a rolling buffer only costs the modulo.
    if window.width <= window.step:
        raise schedule_error(
            f"{cursor.primitive}.overlap",
            f"The windows of loop '{window_loop.node.var}' have width {window.width} and step "
            f"{window.step}, so consecutive iterations share no element.",
        )
    return window


def _candidate_windows(
    cursor: Cursor[Block], window_loop: Cursor[For], own_loops: tuple[For, ...], *, buffer_name: str
) -> Iterator[SlidingWindow]:
    """Yield a window for each dimension along which the block computes one."""
    block = cursor.node
    loops, by_name = loops_of(cursor.function), {iterator.var: iterator for iterator in block.iters}
    stored = {store.indices for store in collect(Store, block) if store.buffer == buffer_name}
    for dimension, at in enumerate(stored.pop() if len(stored) == 1 else ()):
        iterator = by_name.get(at.name) if isinstance(at, Var) else None
        if iterator is not None and iterator.kind == "S":
            form = form_of(iterator.value, values_at(cursor), loops=loops)
            window = _window_of_form(
                form, dimension, iterator, window_loop=window_loop, own_loops=own_loops, loops=loops
            )
            if window is not None:
                yield window


def _window_of_form(
    form: LinearForm,
    dimension: int,
    iterator: BlockIter,
    *,
    window_loop: Cursor[For],
    own_loops: tuple[For, ...],
    loops: Mapping[str, For],
) -> SlidingWindow | None:
    """Return the window that an iterator with a linear form runs over; None if it has none of fixed width."""
    inner, loop = {inner_loop.var for inner_loop in own_loops}, window_loop.node.var
    outer = {outer_loop.var for outer_loop in (*window_loop.loops, window_loop.node)}
    count = form.terms.get(loop, ZERO_FORM)
    width = count_of_values(digits_of(form, inner, loops=loops).values())
    if (
        lowest_loops(form, inner, loops=loops) is None
        or loop in form.opaque
        or form.terms.keys() - inner - outer
        or not (count.is_constant and width.is_constant)
        or count.constant < 1
        or width.constant < 1
    ):
        return None
    return SlidingWindow(
        dimension,
        iterator.var,
        without_loop_terms(form, inner, loops=loops),
        width.constant,
        count.constant,
    )


def _depends_otherwise(
    cursor: Cursor[Block],
    window_loop: Cursor[For],
    own_loops: tuple[For, ...],
    window: SlidingWindow,
) -> bool:
    """Return whether the elements that the block computes depend on the iteration by more than the window."""
    block = cursor.node
    values, loop = values_at(cursor), window_loop.node.var
    inner = {inner_loop.var for inner_loop in own_loops}
    others = [
        resolve(iterator.value, values) for iterator in block.iters if iterator.var != window.var
    ]
    ranges = [resolve(end, values) for inside in own_loops for end in (inside.start, inside.extent)]
    header = replace(block, iters=(), reads=None, writes=None)
    domains = [iterator.domain for iterator in block.iters]
    inside = (header, *domains)
    return (
        loop in free_vars(*others, *ranges)
        or not free_vars(*(resolve(part, values) for part in inside)).isdisjoint(inner | {loop})
        or bool(changing_buffers(window_loop.node.body, window.base, function=window_loop.function))
    )
