"""Copies of statements, each with names of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from gossamer_ir.nodes import Node, Stmt
from gossamer_ir.traversal.buffer_definitions import allocations
from gossamer_ir.traversal.names import Namer
from gossamer_ir.traversal.rename import with_labels, with_names
from gossamer_ir.traversal.rewrite import rewrite_body
from gossamer_ir.traversal.statement_queries import labels_of, vars_bound
from gossamer_ir.traversal.walk import stmts
from gossamer_schedule.made_names import part_name


class Clone(msgspec.Struct, frozen=True):
    """A copy of a body, with its new names by the original ones.

    Variables (with loops), blocks and buffers have tables of their own: a block and a variable may have
    the same name.
    """

    body: tuple[Stmt, ...]
    vars: dict[str, str]
    blocks: dict[str, str]
    buffers: dict[str, str]


def clones_of(
    body: tuple[Stmt, ...], count: int, namer: Namer, *, own_buffers: Iterable[str] = ()
) -> tuple[Clone, ...]:
    """Return `count` copies of a body, in which names `x` become `x_0`, `x_1`, and so on. `own_buffers` are
    declared outside of the body, and get such names, too.

    >>> from gossamer_ir.traversal.names import namer_of
    >>> from gossamer_testkit.examples import SCALE
    >>> (function,) = SCALE.functions
    >>> for found in clones_of(function.body, 2, namer_of(function)):
    ...     print(found.vars, found.blocks, found.buffers)
    {'i': 'i_0', 'vi': 'vi_0'} {'scale': 'scale_0'} {}
    {'i': 'i_1', 'vi': 'vi_1'} {'scale': 'scale_1'} {}
    """
    vars, blocks, buffers = _names_by_kind(body)
    buffers += own_buffers

    def renaming(names: Iterable[str], number: int) -> dict[str, str]:
        return {name: namer.fresh(part_name(name, number)) for name in names}

    return tuple(
        _renamed_clone(
            body, renaming(vars, number), renaming(blocks, number), renaming(buffers, number)
        )
        for number in range(count)
    )


def is_clone(body: tuple[Stmt, ...], of: tuple[Stmt, ...]) -> bool:
    """Return whether two bodies are equal up to the names that they bind."""
    # The names correspond in the order in which they are bound: equal bodies bind them in the same order.
    new, old = _names_by_kind(body), _names_by_kind(of)
    if list(map(len, new)) != list(map(len, old)):
        return False
    vars, blocks, buffers = (dict(zip(*both, strict=True)) for both in zip(old, new, strict=True))
    return _renamed_clone(of, vars, blocks, buffers).body == body


def _names_by_kind(body: tuple[Stmt, ...]) -> tuple[list[str], list[str], list[str]]:
    """Return the names of variables, blocks and buffers that a body binds."""
    every = tuple(stmts(body))
    vars = [name for stmt in every for name in vars_bound(stmt)]
    blocks = [name for stmt in every for name in labels_of(stmt)]
    return vars, blocks, [buffer.name for buffer in allocations(every)]


def forwards_of(copies: Iterable[Clone]) -> dict[str, tuple[str, ...]]:
    """Return, for each name of a body that copies have replaced, its names in the copies."""
    return dict(_forwards(tuple(copies)))


def _forwards(copies: tuple[Clone, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:
    for name in copies[0].vars:
        yield name, tuple(clone.vars[name] for clone in copies)
    for name in copies[0].blocks:
        yield name, tuple(clone.blocks[name] for clone in copies)


def _renamed_clone(
    body: tuple[Stmt, ...],
    vars: dict[str, str],
    blocks: dict[str, str],
    buffers: dict[str, str],
) -> Clone:
    names = vars | buffers

    def rule(node: Node) -> Any | None:
        return with_labels(with_names(node, names), blocks)

    return Clone(rewrite_body(body, rule), vars, blocks, buffers)
