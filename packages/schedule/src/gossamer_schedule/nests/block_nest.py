"""The nests that blocks stand in: loops, and for a reduction the conditions between them, too."""

from __future__ import annotations

import msgspec

from gossamer_ir.analysis.init_nests import Around, reduction_loops
from gossamer_ir.core.build import conjuncts
from gossamer_ir.nodes import Block, Expr, For, If, Unary
from gossamer_schedule.cursor.cursor import Cursor, has_let
from gossamer_schedule.dependence.access import values_at


class Nest(msgspec.Struct, frozen=True):
    """A block and what it stands in, outermost first."""

    block: Cursor
    around: tuple[Around, ...]

    @property
    def top(self) -> Cursor:
        """The outermost loop, or the block where there is none."""
        return self.block.up(len(self.around))

    @property
    def loops(self) -> tuple[For, ...]:
        return tuple(found for found in self.around if isinstance(found, For))

    @property
    def conditions(self) -> tuple[Expr, ...]:
        """The parts of the conditions."""
        found = (part for part in self.around if not isinstance(part, For))
        return tuple(part for condition in found for part in conjuncts(condition))

    @property
    def has_let(self) -> bool:
        """Whether a let stands before the block, or before what is around it."""
        return has_let(self.block, len(self.around))

    @property
    def name(self) -> str:
        """The name of the block."""
        found: str = self.block.node.name
        return found

    @property
    def known_above(self) -> set[str]:
        """The variables that the function has, and the blocks and loops around the nest."""
        found = {param.name for param in self.block.function.params}
        for parent in self.top.parents:
            if isinstance(parent, For):
                found.add(parent.var)
            elif isinstance(parent, Block):
                found |= {item.var for item in parent.iters}
        return found


def around(cursor: Cursor) -> tuple[Around, ...]:
    """The loops and conditions that a statement stands in, outermost first, up to anything else."""
    found: list[Around] = []
    for parent, body, _ in reversed(cursor.path):
        match parent:
            case For():
                found.insert(0, parent)
            case If(condition=condition):
                found.insert(0, condition if body == "then_body" else Unary("not", condition))
            case _:
                break
    return tuple(found)


def loop_nest(cursor: Cursor) -> Nest:
    """The loops directly around a block."""
    return Nest(cursor, cursor.nest)


def reduction_nest(cursor: Cursor) -> Nest:
    """The loops directly around a block; where some outside of these feed its reduction, all that it stands
    in up to them, and the loops directly around them."""
    fed = reduction_loops(cursor.node, values_at(cursor))
    found = around(cursor)
    start = len(found) - len(cursor.nest)
    for at, part in enumerate(found[:start]):
        if isinstance(part, For) and part.var in fed:
            start = at
            break
    while start and isinstance(found[start - 1], For):
        start -= 1
    return Nest(cursor, found[start:])
