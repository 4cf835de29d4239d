"""The normal forms of a program in which rules match patterns."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from gossamer_ir.interchange.records import Decision
from gossamer_ir.nodes import Module
from gossamer_schedule.rules.canonical.unfuse_axes import unfuse_axes


class ProgramForm(msgspec.Struct, frozen=True):
    """A form of a program, and the decisions that lead to it."""

    module: Module
    decisions: tuple[Decision, ...] = ()


def forms_of(module: Module) -> Iterator[ProgramForm]:
    """Yield the program without fused axes, and, if that is another one, with the axes of the sparse tree
    first."""
    plain, unfusing = unfuse_axes(module)
    # The program's own order first, since its author may have chosen it.
    yield ProgramForm(plain, unfusing)
    # Imported late: rules match most programs as they are.
    from gossamer_schedule.rules.canonical.order_axes import order_axes

    changed, reordering = order_axes(plain)
    if reordering:
        yield ProgramForm(changed, (*unfusing, *reordering))
