"""Blocks that access a copy instead of a buffer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from gossamer_ir.nodes import Block, Expr, Load, Node
from gossamer_ir.traversal.access_types import ELEMENT_ACCESSES
from gossamer_ir.traversal.rewrite import rewrite, rewrite_body


def with_redirected_loads(
    block: Block, buffer_name: str, *, to: str, at: tuple[Expr, ...] | None = None
) -> Block:
    """Return the block with its body loading from buffer `to` instead, at the indices `at` if given."""
    # Not in the init: a copy of the elements that the body loads need not have those of the init.
    body = rewrite_body(block.body, _redirection(Load, buffer_name, to=to, at=at))
    return replace(block, body=body, reads=None, writes=None)


def with_redirected_accesses(
    block: Block, buffer_name: str, *, to: str, at: tuple[Expr, ...] | None = None
) -> Block:
    """Return the block with buffer `to` instead of `buffer_name`, at the indices `at` if given."""
    rule = _redirection(ELEMENT_ACCESSES, buffer_name, to=to, at=at)
    rewritten: Block = rewrite(replace(block, reads=None, writes=None), rule)
    return rewritten


def _redirection(
    accesses: type[Any] | tuple[type[Any], ...],
    buffer_name: str,
    *,
    to: str,
    at: tuple[Expr, ...] | None,
) -> Callable[[Any], Any | None]:
    def rule(node: Node) -> Any | None:
        if isinstance(node, accesses) and node.buffer == buffer_name:
            return replace(node, buffer=to, indices=node.indices if at is None else at)
        return None

    return rule
