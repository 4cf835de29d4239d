"""Blocks whose terms may be combined in any order, and the mark of those where they are."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from gossamer_ir.nodes import Block, Combine, For, Stmt, Store
from gossamer_ir.reducers import Reduction, match_reduction, reads

REASSOCIATES = "reassociates"
"""The annotation of a block whose terms a schedule combines in another order than the program."""


def reduction_of(block: Block) -> Reduction | None:
    """The reduction that a block is, if it is nothing but one: what is added does not depend on the
    buffer that it is added to."""
    if len(block.body) != 1 or not isinstance(block.body[0], Store):
        return None
    is_asked = block.predicate is not None and reads(block.predicate, block.body[0].buffer)
    return None if is_asked else match_reduction(block.body[0])


def is_reduction(block: Block) -> bool:
    """Whether a block is nothing but a reduction, by a reducer of the user's too."""
    if len(block.body) != 1 or not isinstance(block.body[0], Combine):
        return reduction_of(block) is not None
    buffers = [store.buffer for store in block.body[0].stores]
    return block.predicate is None or not any(reads(block.predicate, name) for name in buffers)


def single_block(body: tuple[Stmt, ...]) -> Block | None:
    """The block of a body that is nothing but loops around one block."""
    while len(body) == 1 and isinstance(body[0], For):
        body = body[0].body
    return body[0] if len(body) == 1 and isinstance(body[0], Block) else None


def reassociating(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """The body with every block of it marked."""
    return tuple(_marked(found) for found in body)


def _marked(node: Any) -> Any:
    if isinstance(node, For):
        return replace(node, body=reassociating(node.body))
    if isinstance(node, Block) and (REASSOCIATES, True) not in node.annotations:
        return replace(node, annotations=(*node.annotations, (REASSOCIATES, True)))
    return node
