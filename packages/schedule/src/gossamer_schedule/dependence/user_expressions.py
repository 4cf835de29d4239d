"""Expressions of the user's that a primitive evaluates where a statement stands."""

from __future__ import annotations

from gossamer_ir.nodes import Block, Expr, Module
from gossamer_ir.traversal.effects import all_buffers
from gossamer_ir.traversal.walk import buffers_read, resolve
from gossamer_schedule.bounds.safe_loads import is_safe_in
from gossamer_schedule.cursor.site import Site
from gossamer_schedule.dependence.access import values_at
from gossamer_schedule.errors import refusal
from gossamer_schedule.step.expression_texts import expression_of


def expression_at(text: str, site: Site, module: Module, *, primitive: str, argument: str) -> Expr:
    """The expression that an argument of a primitive is the text of, in what is known where a statement
    stands: parameters, loops and iterators around it, and buffers of the caller's, of which it reads only
    elements that exist.

    Raises `.text` and `.not_proved`.
    """
    place = site.place(module)
    found = expression_of(
        text, site.function, known_at(site), primitive=primitive, argument=argument, place=place
    )
    given = {buffer.name for buffer in all_buffers(site.function) if buffer.handle is not None}
    read = buffers_read(found)
    if not read <= given or not is_safe_in(
        site.function, resolve(found, values_at(site)), site.loops
    ):
        raise refusal(
            f"{primitive}.not_proved",
            f"It is not proved that what '{text}' reads exists.",
            needs=f"its elements of {', '.join(sorted(read))} are in bounds, and given by the caller",
            place=place,
        )
    return found


def known_at(site: Site) -> tuple[str, ...]:
    """The index variables that a statement may use: the loops around it in the same block, and the
    iterators of the blocks around it."""
    iters = [item for parent in site.parents if isinstance(parent, Block) for item in parent.iters]
    return (*(loop.var for loop in site.scope), *(item.var for item in iters))
