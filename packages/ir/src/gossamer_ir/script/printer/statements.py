"""Writes statements."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gossamer_ir.nodes import (
    Allocate,
    Annotations,
    AnnotationValue,
    AsyncCopy,
    Atomic,
    AttachAxis,
    Barrier,
    Block,
    Combine,
    CommitGroup,
    Expr,
    For,
    FuseAxes,
    Guard,
    If,
    Iteration,
    Launch,
    Let,
    OverAxis,
    ParallelFor,
    Prefetch,
    Shuffle,
    Stmt,
    Store,
    WaitGroup,
    While,
)
from gossamer_ir.script.printer.blocks import write_block_head
from gossamer_ir.script.printer.context import Printer
from gossamer_ir.script.printer.declarations import write_dense
from gossamer_ir.script.printer.expressions import (
    string_literal,
    write_access,
    write_expr,
    write_index,
    write_indices,
)
from gossamer_ir.script.printer.ranges import write_bounds

_LOOPS = {
    "serial": "serial",
    "parallel": "parallel",
    "vectorized": "vectorized",
    "unrolled": "unroll",
    "thread_binding": "thread_binding",
}


def write_body(p: Printer, body: tuple[Stmt, ...], step: str) -> None:
    """Write the statements of a body, indented; `pass` if there are none."""
    with p.w.indent():
        write_stmts(p, body, step)
        if not body:
            p.w.end_line("pass")


def write_stmts(p: Printer, body: tuple[Stmt, ...], step: str) -> None:
    """Write statements in order."""
    w = p.w
    for number, node in enumerate(body):
        with w.at(step, number):
            STMT_PRINTERS[type(node)](p, node)


def annotations_text(annotations: Annotations) -> str:
    """Return the annotations as a dictionary display."""
    return (
        "{" + ", ".join(f"{string_literal(key)}: {_value(item)}" for key, item in annotations) + "}"
    )


def _value(value: AnnotationValue) -> str:
    return string_literal(value) if isinstance(value, str) else str(value)


def _write_store(p: Printer, node: Store) -> None:
    w, dtype = p.w, p.store_dtype(node.buffer, node.indices)
    if node.predicate is None and not node.nontemporal:
        w.put(f"{node.buffer}[")
        write_indices(w, node.indices, "indices")
        w.put("] = ")
        write_expr(w, node.value, "value", expected=dtype)
        return w.end_line()
    # An assignment has no place for a mask or a hint.
    write_access(w, "store", node.buffer, node.indices)
    w.put(", value=")
    write_expr(w, node.value, "value", expected=dtype)
    if node.predicate is not None:
        w.put(", predicate=")
        write_expr(w, node.predicate, "predicate", expected="bool")
    if node.nontemporal:
        w.put(", nontemporal=True")
    return w.end_line(")")


def _write_combine(p: Printer, node: Combine) -> None:
    """Print `C[i], V[i] = argmax(C[i], V[i], j, A[i, j])`."""
    w = p.w
    for number, store in w.separate_by_commas(node.stores):
        _write_element(p, store, number)
    w.put(f" = {node.reducer}(")
    for number, store in enumerate(node.stores):
        _write_element(p, store, number)
        w.put(", ")
    for number, store in w.separate_by_commas(node.stores):
        with w.inside("stores", number):
            dtype = p.store_dtype(store.buffer, store.indices)
            write_expr(w, store.value, "value", expected=dtype)
    w.end_line(")")


def _write_element(p: Printer, store: Store, number: int) -> None:
    p.w.put(f"{store.buffer}[")
    with p.w.inside("stores", number):
        write_indices(p.w, store.indices, "indices")
    p.w.put("]")


def _write_atomic(p: Printer, node: Atomic) -> None:
    w = p.w
    w.put(f"T.atomic_{node.op}({node.buffer}[")
    write_indices(w, node.indices, "indices")
    w.put("], ")
    write_expr(w, node.value, "value", expected=p.store_dtype(node.buffer, node.indices))
    w.end_line(")")


def _write_let(p: Printer, node: Let) -> None:
    p.w.put(f"{node.var.name}: T.{node.var.dtype} = ")
    write_expr(p.w, node.value, "value", expected=node.var.dtype)
    p.w.end_line()


def _write_allocate(p: Printer, node: Allocate) -> None:
    p.declare(node.buffer)
    with p.w.at("buffer"):
        write_dense(p.w, node.buffer, "alloc_buffer")
    p.w.end_line()


def _write_if(p: Printer, node: If) -> None:
    p.w.put("if ")
    write_expr(p.w, node.condition, "condition", expected="bool")
    p.w.end_line(":")
    write_body(p, node.then_body, "then_body")
    if node.else_body:
        p.w.end_line("else:")
        write_body(p, node.else_body, "else_body")


def _write_while(p: Printer, node: While) -> None:
    p.w.put("while ")
    write_expr(p.w, node.condition, "condition", expected="bool")
    p.w.end_line(":")
    write_body(p, node.body, "body")


def _write_for(p: Printer, node: For) -> None:
    w = p.w
    w.put(f"for {node.var} in T.{_LOOPS[node.kind]}(")
    write_bounds(w, node.start, node.extent)
    if node.thread is not None:
        w.put(f', thread="{node.thread}"')
    _write_options(p, node.weight, node.grain)
    if node.annotations:
        w.put(f", annotations={annotations_text(node.annotations)}")
    w.end_line("):")
    # Blocks inside write iterators that are equal to these loops as one `T.axis.remap`.
    p.loops.append(node)
    write_body(p, node.body, "body")
    p.loops.pop()


def _write_options(p: Printer, weight: Expr | None, grain: Expr | None) -> None:
    for name, option in (("weight", weight), ("grain", grain)):
        if option is not None:
            p.w.put(f", {name}=")
            write_index(p.w, option, name)


def _write_block(p: Printer, node: Block) -> None:
    p.w.end_line(f"with T.block({string_literal(node.name)}):")
    with p.w.indent():
        write_block_head(p, node)
        if node.annotations:
            p.w.end_line(f"T.block_attr({annotations_text(node.annotations)})")
        _write_init_and_body(p, node)


def _write_iteration(p: Printer, node: Iteration) -> None:
    w = p.w
    w.put("with T.sp.iteration([")
    for number, axis in w.separate_by_commas(node.axes):
        with w.at("axes", number):
            w.put(ITERATION_AXIS_TEXTS[type(axis)](axis))
    names = ", ".join(node.vars)
    w.end_line(f'], "{node.kinds}", {string_literal(node.name)}) as [{names}]:')
    with w.indent():
        if node.annotations:
            w.end_line(f"T.sp.iteration_attr({annotations_text(node.annotations)})")
        _write_init_and_body(p, node)


def _write_init_and_body(p: Printer, node: Block | Iteration) -> None:
    if node.init:
        p.w.end_line("with T.init():")
        write_body(p, node.init, "init")
    write_stmts(p, node.body, "body")
    if not node.body:
        p.w.end_line("pass")


def _write_prefetch(p: Printer, node: Prefetch) -> None:
    write_access(p.w, "prefetch", node.buffer, node.indices)
    p.w.end_line(")")


def _write_guard(p: Printer, node: Guard) -> None:
    p.w.put("T.guard(")
    write_expr(p.w, node.condition, "condition", expected="bool")
    p.w.end_line(f", {node.buffer})")


def _write_barrier(p: Printer, _node: Barrier) -> None:
    p.w.end_line("T.barrier()")


def _write_shuffle(p: Printer, node: Shuffle) -> None:
    p.w.put(f"{node.var.name}: T.{node.var.dtype} = T.shuffle_{node.op}(")
    write_expr(p.w, node.value, "value", expected=node.var.dtype)
    p.w.end_line(f", {node.offset}, width={node.width})")


def _write_async_copy(p: Printer, node: AsyncCopy) -> None:
    p.w.end_line("with T.async_copy():")
    write_body(p, node.body, "body")


def _write_commit_group(p: Printer, _node: CommitGroup) -> None:
    p.w.end_line("T.commit_group()")


def _write_wait_group(p: Printer, node: WaitGroup) -> None:
    p.w.end_line(f"T.wait_group({node.pending})")


def _write_args(p: Printer, args: tuple[Expr, ...]) -> None:
    p.w.put("[")
    for number, arg in p.w.separate_by_commas(args):
        write_expr(p.w, arg, "args", item=number)
    p.w.put("]")


def _write_parallel_for(p: Printer, node: ParallelFor) -> None:
    p.w.put(f'T.parallel_for("{node.function}", "{node.var}", ')
    write_bounds(p.w, node.start, node.extent)
    if node.args:
        p.w.put(", args=")
        _write_args(p, node.args)
    _write_options(p, node.weight, node.grain)
    p.w.end_line(")")


def _write_launch(p: Printer, node: Launch) -> None:
    w = p.w
    w.put(f'T.launch("{node.function}", ')
    _write_args(p, node.args)
    if node.threads:
        w.put(", threads={")
        for number, thread in w.separate_by_commas(node.threads):
            with w.at("threads", number):
                w.put(f'"{thread.tag}": ')
                write_index(w, thread.extent, "extent")
        w.put("}")
    w.end_line(")")


ITERATION_AXIS_TEXTS: Mapping[type, Callable[[Any], str]] = {
    OverAxis: lambda axis: axis.axis,
    FuseAxes: lambda axis: f"T.sp.fuse({', '.join(axis.axes)})",
    AttachAxis: lambda axis: f"T.sp.attach({axis.axis}, {axis.parent})",
}
"""The text of each type of entry in the axis list of an iteration."""


STMT_PRINTERS: Mapping[type, Callable[[Printer, Any], None]] = {
    Store: _write_store,
    Combine: _write_combine,
    Atomic: _write_atomic,
    Let: _write_let,
    Allocate: _write_allocate,
    If: _write_if,
    While: _write_while,
    For: _write_for,
    Block: _write_block,
    Iteration: _write_iteration,
    Prefetch: _write_prefetch,
    Guard: _write_guard,
    Barrier: _write_barrier,
    Shuffle: _write_shuffle,
    AsyncCopy: _write_async_copy,
    CommitGroup: _write_commit_group,
    WaitGroup: _write_wait_group,
    ParallelFor: _write_parallel_for,
    Launch: _write_launch,
}
"""The writers of statements, by node type."""
