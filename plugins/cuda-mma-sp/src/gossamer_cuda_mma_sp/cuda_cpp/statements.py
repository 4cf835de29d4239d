"""Statements in CUDA C++."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod
from typing import Any, TypeAlias

from gossamer_cuda_mma_sp.cuda_cpp.cpp_types import cpp_type, unprintable_error
from gossamer_cuda_mma_sp.cuda_cpp.expressions import cpp_expr, element_position, operand
from gossamer_cuda_mma_sp.cuda_cpp.printed_function import PrintedFunction
from gossamer_ir.core.build import integer_value
from gossamer_ir.core.dtypes import DType
from gossamer_ir.core.expression_kinds import dtype_of
from gossamer_ir.interchange.kernel_abi import workspace_field
from gossamer_ir.nodes import (
    Allocate,
    AsyncCopy,
    Atomic,
    Barrier,
    Buffer,
    CommitGroup,
    Expr,
    For,
    Guard,
    If,
    Let,
    Load,
    Prefetch,
    Ramp,
    Shuffle,
    Stmt,
    Store,
    WaitGroup,
    While,
)
from gossamer_llvm import warp_instruction_of

INDENT = "  "
DYNAMIC_SHARED = "dynamic shared"
"""The variable that is the address of the dynamic shared memory; no program can have this name."""


def cpp_lines(function: PrintedFunction, body: tuple[Stmt, ...]) -> Iterator[str]:
    """Yield the lines of statements of the flat stage; raise `UnsupportedError` (`cuda.cpp`) for one that is
    not printed.

    >>> from gossamer_ir.core.build import index, index_var
    >>> from gossamer_ir.nodes import Var
    >>> print(*cpp_lines(PrintedFunction(), (Let(Var("n", "int64"), index(3)),)))
    const int64_t n = 3;
    """
    for stmt in body:
        printer = CPP_STMTS.get(type(stmt))
        if printer is None:
            raise unprintable_error(f"'{type(stmt).__name__}'")
        yield from printer(function, stmt)


def _block(function: PrintedFunction, head: str, body: tuple[Stmt, ...]) -> Iterator[str]:
    yield f"{head} {{"
    yield from (f"{INDENT}{line}" for line in cpp_lines(function, body))
    yield "}"


def _store(function: PrintedFunction, node: Store) -> Iterator[str]:
    name, at = function.name(node.buffer), element_position(function, node.buffer, node.indices)
    value = cpp_expr(function, node.value)
    if not DType.parse(dtype_of(node.value)).is_vector:
        condition = (
            f"if ({cpp_expr(function, node.predicate)}) " if node.predicate is not None else ""
        )
        yield f"{condition}{name}[{at}] = {value};"
        return
    mask = f", {cpp_expr(function, node.predicate)}" if node.predicate is not None else ""
    yield f"gs::scatter({name}, {at}, {value}{mask});"


def _let(function: PrintedFunction, node: Let) -> Iterator[str]:
    value = operand(function, node.value)
    yield f"const {cpp_type(node.var.dtype)} {function.name(node.var.name)} = {value};"


def _allocate(function: PrintedFunction, node: Allocate) -> Iterator[str]:
    buffer = node.buffer
    function.buffers[buffer.name] = buffer
    type_, name = cpp_type(buffer.dtype), function.name(buffer.name)
    declaration = f"{type_} {name}[{_elements(buffer)}]"
    if buffer.scope == "shared" and buffer.name in function.dynamic_offsets:
        address = f"{function.name(DYNAMIC_SHARED)} + {function.dynamic_offsets[buffer.name]}"
        yield f"{type_}* {name} = reinterpret_cast<{type_}*>({address});"
    elif buffer.scope == "shared":
        # Not cleared: no thread may read what none wrote.
        yield f"__shared__ {declaration};"
    elif buffer.scope in ("global", "local"):
        yield f"{declaration} = {{}};"
    else:
        raise unprintable_error(f"Memory of the scope '{buffer.scope}'")


def _elements(buffer: Buffer) -> int:
    extents = [integer_value(extent) for extent in buffer.shape]
    constants = [extent for extent in extents if extent is not None]
    if len(constants) < len(extents):
        raise unprintable_error(f"The buffer '{buffer.name}' of a size that is not constant")
    # C++ has no arrays without elements.
    return max(1, prod(max(0, extent) for extent in constants))


def _if(function: PrintedFunction, node: If) -> Iterator[str]:
    yield from _block(function, f"if ({cpp_expr(function, node.condition)})", node.then_body)
    if node.else_body:
        yield from _block(function, "else", node.else_body)


def _while(function: PrintedFunction, node: While) -> Iterator[str]:
    yield from _block(function, f"while ({cpp_expr(function, node.condition)})", node.body)


def _for(function: PrintedFunction, node: For) -> Iterator[str]:
    name = function.name(node.var)
    if warp_instruction_of(node) is not None:
        raise unprintable_error("A matrix instruction")
    if node.thread is not None:
        yield "{"
        yield f"{INDENT}const int64_t {name} = {node.thread};"
        yield from (f"{INDENT}{line}" for line in cpp_lines(function, node.body))
        yield "}"
    elif node.kind != "serial":
        raise unprintable_error(f"A loop of kind '{node.kind}'")
    else:
        start, extent = operand(function, node.start), operand(function, node.extent)
        # The remaining iterations are counted, since start + extent may wrap around.
        left = function.name(f"{node.var} left")
        head = f"for (int64_t {name} = {start}, {left} = {extent}; {left} > 0; ++{name}, --{left})"
        yield from _block(function, head, node.body)


def _atomic(function: PrintedFunction, node: Atomic) -> Iterator[str]:
    name, at = function.name(node.buffer), element_position(function, node.buffer, node.indices)
    yield f"gs::atomic_{node.op}(&{name}[{at}], {cpp_expr(function, node.value)});"


def _barrier(function: PrintedFunction, node: Barrier) -> Iterator[str]:
    yield "__syncthreads();"


def _shuffle(function: PrintedFunction, node: Shuffle) -> Iterator[str]:
    value = cpp_expr(function, node.value)
    shuffled = f"gs::shuffle_{node.op}<{node.width}>({value}, {node.offset})"
    yield f"const {cpp_type(node.var.dtype)} {function.name(node.var.name)} = {shuffled};"


def _async_copy(function: PrintedFunction, node: AsyncCopy) -> Iterator[str]:
    (store,) = node.body
    assert isinstance(store, Store)
    assert isinstance(store.value, Load)
    places = [
        f"&{function.name(access.buffer)}[{element_position(function, access.buffer, _first(access))}]"
        for access in (store, store.value)
    ]
    yield f"gs::copy_async<{DType.parse(store.value.dtype).lanes}>({', '.join(places)});"


def _first(node: Load | Store) -> tuple[Expr, ...]:
    """Return the indices of the first element of a copy."""
    return tuple(
        position.base if isinstance(position, Ramp) else position for position in node.indices
    )


def _commit_group(function: PrintedFunction, node: CommitGroup) -> Iterator[str]:
    yield "gs::commit_group();"


def _wait_group(function: PrintedFunction, node: WaitGroup) -> Iterator[str]:
    yield f"gs::wait_group<{node.pending}>();"


def _prefetch(function: PrintedFunction, node: Prefetch) -> Iterator[str]:
    # A hint, and the address may be out of bounds.
    yield f"// prefetch {function.name(node.buffer)}"


def _guard(function: PrintedFunction, node: Guard) -> Iterator[str]:
    yield f"if (!({cpp_expr(function, node.condition)})) {{"
    field, number = (
        workspace_field("failed_buffer"),
        function.bounds_checked_buffers.index(node.buffer),
    )
    # Atomic, because several threads may fail.
    yield f"{INDENT}atomicExch(reinterpret_cast<unsigned long long*>(workspace + {field}), {number}ull);"
    yield f"{INDENT}return;"
    yield "}"


_Printer: TypeAlias = Callable[[PrintedFunction, Any], Iterator[str]]

CPP_STMTS: dict[type, _Printer] = {
    Store: _store,
    Let: _let,
    Allocate: _allocate,
    If: _if,
    While: _while,
    For: _for,
    Atomic: _atomic,
    Barrier: _barrier,
    Prefetch: _prefetch,
    Shuffle: _shuffle,
    AsyncCopy: _async_copy,
    CommitGroup: _commit_group,
    WaitGroup: _wait_group,
    Guard: _guard,
}
"""The printer of each type of statement. Those that earlier passes replace, and launches, have none."""
