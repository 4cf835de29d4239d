"""Unswitches loops on the alignment of array base addresses, which is loop invariant."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from gossamer_ir.analysis.proofs.program_point import is_speculatable_before
from gossamer_ir.arith.simplify import simplify_body
from gossamer_ir.core.build import ZERO, is_handle
from gossamer_ir.nodes import (
    Binary,
    Compare,
    Const,
    Expr,
    For,
    Function,
    If,
    Load,
    Module,
    Reinterpret,
    Stmt,
    Store,
)
from gossamer_ir.transform.clone_with_fresh_names import with_fresh_names
from gossamer_ir.traversal.names import Namer, namer_of
from gossamer_ir.traversal.node_index import types_in
from gossamer_ir.traversal.rewrite import rewrite, rewrite_body
from gossamer_ir.traversal.walk import collect, stmts, walk
from gossamer_lower.lowering_pass import lowering_pass, map_functions
from gossamer_lower.statements.rebuild import Stmts, map_stmts, with_bodies, with_body


@lowering_pass(
    takes=("flat",),
    after={
        "hoist_allocations": "it clones whole loops, in which a later pass would do its work twice",
        "lower_atomics": "it clones whole loops, in which a later pass would do its work twice",
    },
)
def unswitch_on_alignment(module: Module) -> Module:
    """Unswitch outermost loops on conditions on the address of an array, or on its alignment.

    Inner loops are not unswitched themselves: the outermost loop is cloned with all of them. If only one
    statement of its body depends on addresses, and others are loops, only this statement is cloned. The pass
    runs at the flat stage, where the address of an array is a parameter of the function. A loop with masks
    that depend on how far an array begins after an aligned address has a copy for arrays that begin at one:
    its vectors need no masks, and those that hold nothing are gone.

    >>> from gossamer_testkit.examples import program
    >>> from gossamer_testkit.show import body_text
    >>> from gossamer_lower import outline_parallel
    >>> before = program('''
    ... for i in T.serial(n):
    ...     Y[i] = X[i]
    ...     if T.reinterpret("int64", x) % 64 > 0:
    ...         Y[i] = 0.0
    ... ''')
    >>> print(body_text(unswitch_on_alignment(outline_parallel(before))))
    if T.reinterpret(x, "int64") % 64 > 0:
        for i in T.serial(n):
            Y[i] = X[i]
            Y[i] = 0.0
    else:
        for i_1 in T.serial(n):
            Y[i_1] = X[i_1]
    """
    return map_functions(module, _unswitch_function)


def _unswitch_function(function: Function) -> Function:
    if Reinterpret not in types_in(function):
        return function
    namer = namer_of(function)
    return with_body(function, _body(function.body, function, namer))


def _body(body: Stmts, function: Function, namer: Namer) -> Stmts:
    return map_stmts(body, lambda stmt: (_stmt(stmt, function, namer),))


def _stmt(stmt: Stmt, function: Function, namer: Namer) -> Stmt:
    match stmt:
        # Not into `while`: the address is the same in each iteration, but the loop may never run.
        case If():
            return with_bodies(stmt, lambda body: _body(body, function, namer))
        case For():
            return _loop(stmt, function, namer)
    return stmt


def _loop(loop: For, function: Function, namer: Namer) -> Stmt:
    part = _separate_part(loop)
    if isinstance(part, For):
        unswitched = _loop(part, function, namer)
    else:
        condition = next(_conditions(loop, function), None)
        unswitched = _unswitch(part or loop, condition, namer)
    if part is None:
        return unswitched
    body = (unswitched if stmt is part else stmt for stmt in loop.body)
    return replace(loop, body=tuple(body))


def _separate_part(loop: For) -> For | If | None:
    """Return the statement of the body that alone depends on addresses, if the body has other loops.

    Unswitching it costs a branch in each iteration, which is little beside these loops; unswitching the whole
    loop would clone them without need.
    """
    dependent = [stmt for stmt in loop.body if any(map(is_handle, walk(stmt)))]
    if len(dependent) != 1 or not isinstance(dependent[0], (For, If)):
        return None
    others = (stmt for stmt in loop.body if stmt is not dependent[0])
    return dependent[0] if any(isinstance(stmt, For) for stmt in stmts(others)) else None


def _unswitch(stmt: For | If, condition: Expr | None, namer: Namer) -> Stmt:
    """Return a statement unswitched on a condition, or on its masks if there is none."""
    if condition is None:
        return _unswitch_on_masks(stmt, namer)
    where, otherwise = (
        _with_condition_resolved(stmt, condition, holds=holds) for holds in (True, False)
    )
    return If(condition, where, with_fresh_names(otherwise, namer))


def _unswitch_on_masks(stmt: For | If, namer: Namer) -> Stmt:
    """Return the branch between a copy of a statement for an array that begins at an aligned address and the
    statement, if its masks depend on the address of one."""
    shift = next(_misalignments(stmt), None)
    if shift is None:
        return stmt
    aligned = rewrite(stmt, lambda node: ZERO if node == shift else None, leaves=False)
    is_aligned = Compare("eq", shift, ZERO)
    return If(is_aligned, simplify_body((aligned,)), with_fresh_names((stmt,), namer))


def _misalignments(stmt: Stmt) -> Iterator[Expr]:
    """Yield the remainders of addresses that masks in a statement depend on."""
    loads, stores = collect(Load, stmt), collect(Store, stmt)
    masks = [*(load.predicate for load in loads), *(store.predicate for store in stores)]
    for mask in dict.fromkeys(mask for mask in masks if mask is not None):
        yield from filter(_is_misalignment, walk(mask))


# Other operations: their operands are visited.
def _is_misalignment(node: object) -> bool:
    """Return whether an expression is the remainder of an address, in elements or in bytes."""
    match node:
        case Binary(
            op="floormod", lhs=Binary(op="floordiv", lhs=Reinterpret(), rhs=Const()), rhs=Const()
        ):
            return True
        case Binary(op="floormod", lhs=Reinterpret(), rhs=Const()):
            return True
    return False


def _conditions(loop: For, function: Function) -> Iterator[Expr]:
    """Yield the loop-invariant conditions on addresses in a loop."""
    for stmt in stmts(loop.body):
        if not isinstance(stmt, If) or not any(map(is_handle, walk(stmt.condition))):
            continue
        # The whole condition must be invariant, not only the address in it.
        if is_speculatable_before(stmt.condition, loop, function):
            yield stmt.condition


def _with_condition_resolved(stmt: Stmt, condition: Expr, *, holds: bool) -> Stmts:
    """Return a statement with a condition resolved to true (`holds`) or false."""

    def rule(node: object) -> tuple[Stmt, ...] | None:
        if isinstance(node, If) and node.condition == condition:
            return node.then_body if holds else node.else_body
        return None

    return rewrite_body((stmt,), rule, leaves=False)
