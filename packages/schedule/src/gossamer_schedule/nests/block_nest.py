"""The nests of blocks: loops and, for a reduction, the conditions between them."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from gossamer_ir.analysis.accesses.init_nests import LoopOrCondition, reduction_loops
from gossamer_ir.core.conditions import conjuncts
from gossamer_ir.nodes import Block, Expr, For, If, Stmt
from gossamer_ir.traversal.statement_queries import body_in
from gossamer_schedule.cursor.cursor_at import Cursor, has_let
from gossamer_schedule.cursor.variable_values import values_at
from gossamer_schedule.errors import listing, schedule_error


class BlockNest(msgspec.Struct, frozen=True):
    """A block and the loops and conditions around it, outermost first."""

    block: Cursor[Block]
    enclosing: tuple[LoopOrCondition, ...]

    @property
    def top(self) -> Cursor[Any]:
        """The outermost loop, or the block if there is none."""
        return self.block.up(len(self.enclosing))

    @property
    def loops(self) -> tuple[For, ...]:
        return tuple(part for part in self.enclosing if isinstance(part, For))

    @property
    def conditions(self) -> tuple[Expr, ...]:
        """The conjuncts of the conditions."""
        conditions = (part for part in self.enclosing if not isinstance(part, For))
        return tuple(part for condition in conditions for part in conjuncts(condition))

    @property
    def has_let(self) -> bool:
        """True if a let precedes the block, or one of the statements around it."""
        return has_let(self.block, len(self.enclosing))

    @property
    def name(self) -> str:
        """The name of the block."""
        name: str = self.block.node.name
        return name

    # Other statements: end the nest of a block, to which only loops and conditions belong.
    @property
    def known_above(self) -> set[str]:
        """The parameters of the function, and the variables of loops and blocks around the nest."""
        names = {param.name for param in self.block.function.params}
        for parent in self.top.parents:
            if isinstance(parent, For):
                names.add(parent.var)
            elif isinstance(parent, Block):
                names |= {iterator.var for iterator in parent.iters}
        return names


# Other statements: end the nest of a block, to which only loops and conditions belong.
def enclosing_loops_and_conditions(cursor: Cursor[object]) -> tuple[LoopOrCondition, ...]:
    """Return the innermost loops and conditions around a statement with no other statement between them,
    outermost first."""
    parts: list[LoopOrCondition] = []
    for step in reversed(cursor.path):
        match step.parent:
            case For() as loop:
                parts.insert(0, loop)
            case If() as branch if (condition := body_in(branch, step.field).condition) is not None:
                parts.insert(0, condition)
            # Another statement between two loops belongs to the outer one only.
            case _:
                break
    return tuple(parts)


def required_enclosing_nest(cursor: Cursor[Block], top: Cursor[For]) -> BlockNest:
    """Return the nest of a block from the loop at `top` down, or refuse a loop that is not around the block.

    Raises `.not_enclosing`, also if other statements are in between.
    """
    enclosing = enclosing_loops_and_conditions(cursor)
    first = next((number for number, part in enumerate(enclosing) if part is top.node), None)
    if first is None:
        loops = (part.var for part in enclosing if isinstance(part, For))
        raise schedule_error(
            f"{cursor.primitive}.not_enclosing",
            f"Loop '{top.node.var}' is not a loop around block '{cursor.node.name}'.",
            hint=listing("enclosing loops", loops),
            place=cursor.place,
        )
    return BlockNest(cursor, enclosing[first:])


def loop_nest(cursor: Cursor[Block]) -> BlockNest:
    """Return the nest of the loops directly around a block."""
    return BlockNest(cursor, cursor.nest)


def reduction_nest(cursor: Cursor[Block]) -> BlockNest:
    """Return the nest of a block that includes all loops that feed its reduction.

    If such loops are outside the loops directly around the block, the nest includes the conditions up to
    them, and the loops directly around them.
    """
    fed = reduction_loops(cursor.node, values_at(cursor))
    parts = enclosing_loops_and_conditions(cursor)
    start = len(parts) - len(cursor.nest)
    for number, part in enumerate(parts[:start]):
        if isinstance(part, For) and part.var in fed:
            start = number
            break
    while start and isinstance(parts[start - 1], For):
        start -= 1
    return BlockNest(cursor, parts[start:])


# Other statements: end the nest of a block, to which only loops and conditions belong.
def single_block(body: tuple[Stmt, ...]) -> Block | None:
    """Return the block of a body that consists of loops around one block, else None."""
    while len(body) == 1 and isinstance(body[0], For):
        body = body[0].body
    return body[0] if len(body) == 1 and isinstance(body[0], Block) else None


def with_single_block_replaced(
    body: tuple[Stmt, ...], blocks: tuple[Block, ...]
) -> tuple[Stmt, ...]:
    """Return a body that consists of loops around one block, with that block replaced by others."""
    (stmt,) = body
    if isinstance(stmt, For):
        return (replace(stmt, body=with_single_block_replaced(stmt.body, blocks)),)
    return blocks
