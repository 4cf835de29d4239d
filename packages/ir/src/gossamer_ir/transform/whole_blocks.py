"""Drops the conditions of blocks that extend beyond a matrix, for a matrix that consists of whole blocks."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from msgspec.structs import replace

from gossamer_ir.arith.affine import ZERO_FORM, affine_of
from gossamer_ir.arith.prover import Prover
from gossamer_ir.core.build import ONE, ZERO, index_var
from gossamer_ir.core.conditions import conjunction, conjuncts
from gossamer_ir.core.iteration_axes import all_axis_names
from gossamer_ir.nodes import (
    Axis,
    Binary,
    Expr,
    FormatDescription,
    Function,
    If,
    Iteration,
    Module,
    Node,
)
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.rewrite import rewrite
from gossamer_ir.traversal.walk import collect
from gossamer_support.items_by_name import items_by_name


def block_counts(description: FormatDescription) -> tuple[tuple[Expr, Expr], ...]:
    """Return the sizes that axes of a format divide into blocks, each with the size of a block. The quotients
    are rounded up.

    >>> from gossamer_ir.script import parse_format
    >>> blocks_of_rows = parse_format('''
    ... @T.format
    ... def blocks_of_rows(a: T.handle, m: T.int64, n: T.int64, height: T.int64) -> None:
    ...     IO = T.sp.dense_fixed((m + height - 1) // height)
    ...     II = T.sp.dense_fixed(height)
    ...     J = T.sp.dense_fixed(n)
    ...     A = T.sp.match_buffer(a, (IO, II, J), "float32")
    ...     T.sp.map(lambda io, ii, j: (io * height + ii, j), shape=(m, n))
    ... ''')
    >>> [(size.name, block.name) for size, block in block_counts(blocks_of_rows)]
    [('m', 'height')]
    """
    quotients = collect(Binary, *(axis.length for axis in description.axes))
    operands = (_size_and_block(quotient) for quotient in quotients)
    return tuple(operand for operand in operands if operand is not None)


def without_partial_blocks(module: Module) -> Module:
    """Return a program for sizes that are multiples of the sizes of blocks: lengths of axes are not rounded
    up, and conditions that then always hold are left out."""
    return replace(module, functions=tuple(map(_for_whole_blocks, module.functions)))


def _for_whole_blocks(function: Function) -> Function:
    axes = tuple(rewrite(axis, _exact) for axis in function.axes)
    by_name = items_by_name(axes)
    body = tuple(rewrite(stmt, partial(_unconditional, by_name=by_name)) for stmt in function.body)
    return replace(function, axes=axes, body=body)


# Other operations: their operands are visited.
def _size_and_block(expr: Expr) -> tuple[Expr, Expr] | None:
    """Return size and block of `(size + block - 1) // block`; None for anything else."""
    match expr:
        case Binary(op="floordiv", lhs=Binary(op="sub", lhs=Binary(op="add", lhs=size)), rhs=block):
            above = Binary("sub", Binary("add", size, block), ONE)
            is_rounded = affine_of(Binary("sub", expr.lhs, above)) == ZERO_FORM
            return (size, block) if is_rounded else None
    return None


def _exact(node: Any) -> Expr | None:
    operands = _size_and_block(node)
    return None if operands is None else Binary("floordiv", *operands)


def _unconditional(node: Node, *, by_name: Mapping[str, Axis]) -> Any:
    """Return an iteration without the conditions that its variables always satisfy."""
    if not isinstance(node, Iteration):
        return None
    prover = Prover()
    for axis in by_name.values():
        for name in sorted(free_vars(axis.length)):
            prover.assume_nonnegative(index_var(name))
    for var, name in zip(node.vars, all_axis_names(node.axes), strict=True):
        prover.assume_range(var, ZERO, by_name[name].length)
    return replace(
        node, init=_keep_conditions(node.init, prover), body=_keep_conditions(node.body, prover)
    )


def _keep_conditions(body: tuple[Any, ...], prover: Prover) -> tuple[Any, ...]:
    kept: list[Any] = []
    for stmt in body:
        if not isinstance(stmt, If) or stmt.else_body:
            kept.append(stmt)
            continue
        open_ = [
            condition for condition in conjuncts(stmt.condition) if not prover.proves(condition)
        ]
        condition = conjunction(*open_)
        kept += stmt.then_body if condition is None else (replace(stmt, condition=condition),)
    return tuple(kept)
