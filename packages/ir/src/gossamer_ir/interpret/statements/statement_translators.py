"""Translates statements to Python functions of the frame, one translator for each kind of node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gossamer_ir.analysis.statements.atomic_accumulation import plain_update
from gossamer_ir.core.expression_kinds import has_lanes
from gossamer_ir.core.statement_kinds import effects_of
from gossamer_ir.interpret.expressions.memory_access import translate_store
from gossamer_ir.interpret.frame import Exec, Frame
from gossamer_ir.interpret.interpreter_errors import GuardFailed, InterpreterError
from gossamer_ir.interpret.memory.values import garbage_array
from gossamer_ir.interpret.statements.blocks import block
from gossamer_ir.interpret.statements.calls import launch, parallel_for
from gossamer_ir.interpret.statements.combine import combine_elements
from gossamer_ir.interpret.statements.iterations import iteration
from gossamer_ir.interpret.statements.parallel_chunks import iterations_of, weight_check
from gossamer_ir.interpret.statements.thread_loops import thread_loop
from gossamer_ir.interpret.threads.watched_views import buffer_view
from gossamer_ir.interpret.translator import EnclosingStmt, Translator
from gossamer_ir.nodes import (
    Allocate,
    AsyncCopy,
    Atomic,
    Barrier,
    Block,
    Combine,
    CommitGroup,
    For,
    Guard,
    If,
    Iteration,
    Launch,
    Let,
    ParallelFor,
    Prefetch,
    Shuffle,
    Store,
    WaitGroup,
    While,
)


def _atomic(node: Atomic, translator: Translator) -> Exec:
    return translate_store(plain_update(node), translator)


def _let(node: Let, translator: Translator) -> Exec:
    name, value = node.var.name, translator.expr(node.value)

    def run(frame: Frame) -> None:
        frame.values[name] = value(frame)

    return run


def _allocate(node: Allocate, translator: Translator) -> Exec:
    buffer, shape = node.buffer, translator.exprs(node.buffer.shape)
    is_watched = buffer.name in translator.watched

    def run(frame: Frame) -> None:
        sizes = tuple(max(0, int(size)) for size in shape(frame))
        # Zeros would hide that a program reads what it has not written.
        array = garbage_array(sizes, buffer.dtype)
        grid = frame.grid if is_watched else None
        earlier = frame.views.get(buffer.name)
        frame.views[buffer.name] = buffer_view(buffer, array, grid=grid, earlier=earlier)

    return run


def _if(node: If, translator: Translator) -> Exec:
    condition = translator.expr(node.condition)
    then_body, else_body = (
        translator.body(body.stmts, EnclosingStmt(node, body.conditions))
        for body in effects_of(node).bodies
    )

    def run(frame: Frame) -> None:
        if condition(frame):
            then_body(frame)
        else:
            else_body(frame)

    return run


def _while(node: While, translator: Translator) -> Exec:
    condition, count = translator.expr(node.condition), f"while {len(translator.whiles)}"
    translator.whiles.append((len(translator.around), count))
    body = translator.body(node.body)
    translator.whiles.pop()

    def run(frame: Frame) -> None:
        frame.values[count] = 0
        while condition(frame):
            body(frame)
            frame.values[count] += 1

    return run


def _for(node: For, translator: Translator) -> Exec:
    if node.thread is not None:
        return thread_loop(node, translator)
    name, iterations = node.var, iterations_of(node, translator)
    enclosing = EnclosingStmt(node)
    body, check = translator.body(node.body, enclosing), weight_check(node, translator)
    hoisted = tuple(enclosing.hoisted)

    def run(frame: Frame) -> None:
        for init in hoisted:
            init(frame)
        numbers = iterations(frame)
        check(frame)
        values = frame.values
        for value in numbers:
            values[name] = value
            body(frame)

    return run


def _barrier(node: Barrier, translator: Translator) -> Exec:
    """Count the barrier, which is between loops over threads: within one it is a step of its thread (see
    `thread_loops`)."""

    def run(frame: Frame) -> None:
        frame.grid.barriers += 1

    return run


def _prefetch(node: Prefetch, translator: Translator) -> Exec:
    """Evaluate the indices, whose loads may be out of bounds; the prefetched element may be anywhere."""
    indices = translator.exprs(node.indices)

    def run(frame: Frame) -> None:
        indices(frame)

    return run


def _guard(node: Guard, translator: Translator) -> Exec:
    condition, buffer = translator.expr(node.condition), node.buffer
    is_wide = has_lanes(node.condition)

    def run(frame: Frame) -> None:
        value = condition(frame)
        if not (value.all() if is_wide else value):
            raise GuardFailed(buffer)

    return run


def _shuffle(node: Shuffle, translator: Translator) -> Exec:
    """Refuse a shuffle of one thread: of several, it is a step (see `thread_loops`)."""

    def run(frame: Frame) -> None:
        raise InterpreterError(
            f"The shuffle of '{node.var.name}' is outside of a loop over threads."
        )

    return run


def _async_copy(node: AsyncCopy, translator: Translator) -> Exec:
    """Run the store; elements that threads watch have their values only after a wait."""
    body = translator.body(node.body)

    def run(frame: Frame) -> None:
        frame.grid.is_copying = True
        body(frame)
        frame.grid.is_copying = False

    return run


def _commit_group(_node: CommitGroup, _translator: Translator) -> Exec:
    return lambda frame: frame.grid.copies.commit(frame.grid.thread)


def _wait_group(node: WaitGroup, _translator: Translator) -> Exec:
    def run(frame: Frame) -> None:
        for copied in frame.grid.copies.wait(frame.grid.thread, node.pending):
            copied.view.complete(copied.where)

    return run


STMT_TRANSLATIONS: dict[type, Callable[[Any, Translator], Exec]] = {
    Store: translate_store,
    Combine: combine_elements,
    Atomic: _atomic,
    Let: _let,
    Allocate: _allocate,
    If: _if,
    While: _while,
    For: _for,
    Block: block,
    Iteration: iteration,
    Prefetch: _prefetch,
    Guard: _guard,
    Barrier: _barrier,
    Shuffle: _shuffle,
    AsyncCopy: _async_copy,
    CommitGroup: _commit_group,
    WaitGroup: _wait_group,
    ParallelFor: parallel_for,
    Launch: launch,
}
