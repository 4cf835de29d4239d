"""Lets buffers in the shared memory of a block that are live at different times share it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from sys import maxsize
from typing import Any

import msgspec
from msgspec.structs import replace

from gossamer_ir.core.build import ZERO, add, index, integer_value, mul
from gossamer_ir.core.expression_kinds import has_lanes
from gossamer_ir.core.statement_kinds import effects_of
from gossamer_ir.nodes import Allocate, Buffer, Expr, Function, Module, Node, Ramp, Stmt
from gossamer_ir.traversal.access_types import BUFFER_NODES, ELEMENT_NODES
from gossamer_ir.traversal.buffer_definitions import allocations
from gossamer_ir.traversal.buffer_uses import buffers_named
from gossamer_ir.traversal.rewrite import rewrite_body
from gossamer_ir.traversal.statement_queries import allocation_of, threads_of
from gossamer_ir.traversal.walk import collect, stmts
from gossamer_lower.device.kernel_functions import map_kernels
from gossamer_lower.lowering_pass import lowering_pass
from gossamer_lower.statements.rebuild import with_bodies, with_body


class _Lifetime(msgspec.Struct, frozen=True):
    """A buffer of constant size, and the numbers of the first and the last statement around which it is
    live."""

    buffer: Buffer
    elements: int
    first: int
    last: int

    def overlaps(self, other: _Lifetime) -> bool:
        return self.first <= other.last and other.first <= self.last


@lowering_pass(
    takes=("flat",),
    pipeline="device",
    after={
        "split_host_device": "it merges buffers of one kernel",
        "verify_stores": "errors name the buffers of the program",
    },
)
def merge_shared_memory(module: Module) -> Module:
    """Return a module whose kernels have as few buffers in shared memory as lifetimes and dtypes allow.

    A buffer is live from the first to the last statement that uses it, in the body that allocates it: an
    iteration of a loop does not see what another one stored to a buffer that the loop allocates. One that
    asynchronous copies fill is live to the end, since the last of them may be complete late.

    >>> from gossamer_ir.script import parse_module
    >>> from gossamer_testkit.show import body_text
    >>> from gossamer_lower import split_host_device
    >>> flat = parse_module('''
    ... @T.prim_func
    ... def twice(x: T.handle) -> None:
    ...     T.stage("flat")
    ...     X = T.match_buffer(x, (32,), "float32")
    ...     for b in T.thread_binding(1, thread="blockIdx.x"):
    ...         S = T.alloc_buffer((32,), "float32", scope="shared")
    ...         for t in T.thread_binding(32, thread="threadIdx.x"):
    ...             S[t] = X[t]
    ...         for u in T.thread_binding(32, thread="threadIdx.x"):
    ...             X[u] = S[31 - u]
    ...         R = T.alloc_buffer((2, 16), "float32", scope="shared")
    ...         for v in T.thread_binding(32, thread="threadIdx.x"):
    ...             R[v // 16, v % 16] = X[v]
    ... ''')
    >>> _, kernel = merge_shared_memory(split_host_device(flat)).functions
    >>> print(body_text(Module("flat", (kernel,), kernel.name)))
    for b in T.thread_binding(1, thread="blockIdx.x"):
        S = T.alloc_buffer((32,), "float32", scope="shared")
        for t in T.thread_binding(32, thread="threadIdx.x"):
            S[t] = X[t]
        for u in T.thread_binding(32, thread="threadIdx.x"):
            X[u] = S[31 - u]
        for v in T.thread_binding(32, thread="threadIdx.x"):
            S[v // 16 * 16 + v % 16] = X[v]
    """
    return map_kernels(module, _with_merged_buffers)


def _with_merged_buffers(function: Function) -> Function:
    lifetimes = _LifetimeFinder().find(function)
    shared = [group for group in _groups(lifetimes) if len(group) > 1]
    if not shared:
        return function
    merged = {lifetime.buffer.name: _merge_group(group) for group in shared for lifetime in group}
    originals = {lifetime.buffer.name: lifetime.buffer for group in shared for lifetime in group}
    body = _Placer(merged).body(function.body)
    return with_body(function, _with_flat_accesses(body, originals, merged))


def _merge_group(group: Sequence[_Lifetime]) -> Buffer:
    """Return the buffer that replaces those of a group: its name is that of the first one."""
    first = min(group, key=lambda lifetime: lifetime.first).buffer
    return replace(first, shape=(index(max(lifetime.elements for lifetime in group)),))


def _groups(lifetimes: Iterable[_Lifetime]) -> list[list[_Lifetime]]:
    """Return groups of buffers of one dtype that may share memory. Large buffers come first, so that small
    ones fit into what these take in any case."""
    groups: list[list[_Lifetime]] = []
    for lifetime in sorted(lifetimes, key=lambda one: (-one.elements, one.first)):
        for group in groups:
            is_of_dtype = group[0].buffer.dtype == lifetime.buffer.dtype
            if is_of_dtype and not any(map(lifetime.overlaps, group)):
                group.append(lifetime)
                break
        else:
            groups.append([lifetime])
    return groups


class _LifetimeFinder:
    """Numbers the statements of a kernel in the order of the text."""

    def __init__(self) -> None:
        self._count = 0
        self._lifetimes: list[_Lifetime] = []

    def find(self, function: Function) -> list[_Lifetime]:
        """Return the lifetimes of the buffers that may share memory."""
        self._visit_body(function.body)
        others = {
            node.buffer for node in collect(BUFFER_NODES, *function.body) if not _is_flattened(node)
        }
        return [lifetime for lifetime in self._lifetimes if lifetime.buffer.name not in others]

    def _visit_body(self, body: tuple[Stmt, ...]) -> None:
        spans: list[tuple[int, int]] = []
        for stmt in body:
            first = self._count
            self._count += 1
            for inner in effects_of(stmt).bodies:
                self._visit_body(inner.stmts)
            spans.append((first, self._count))
            self._count += 1
        for number, stmt in enumerate(body):
            buffer = allocation_of(stmt)
            if buffer is not None and buffer.scope == "shared":
                self._add(buffer, body[number + 1 :], spans[number + 1 :])

    def _add(
        self, buffer: Buffer, rest: tuple[Stmt, ...], spans: Sequence[tuple[int, int]]
    ) -> None:
        """Note a buffer, and when the statements after its allocation use it."""
        extents = [integer_value(extent) for extent in buffer.shape]
        used = [
            span
            for stmt, span in zip(rest, spans, strict=True)
            if buffer.name in buffers_named(stmt)
        ]
        if used and None not in extents:
            elements = prod(extent for extent in extents if extent is not None)
            copies = [stmt for stmt in stmts(rest) if threads_of(stmt).is_async]
            is_copied = buffer.name in buffers_named(*copies)
            last = maxsize if is_copied else used[-1][1]
            self._lifetimes.append(_Lifetime(buffer, elements, used[0][0], last))


def _is_flattened(node: Node) -> bool:
    """Return whether an access can be one of a buffer with one dimension: of an element, or of consecutive
    ones along the last dimension."""
    if not isinstance(node, ELEMENT_NODES):
        return False
    *outer, last = node.indices or (ZERO,)
    return not any(map(has_lanes, outer)) and (not has_lanes(last) or isinstance(last, Ramp))


class _Placer:
    """Allocates merged buffers in the innermost bodies around all allocations that they replace."""

    def __init__(self, merged: Mapping[str, Buffer]) -> None:
        self._merged = merged
        self._counts: dict[str, int] = {}
        for buffer in merged.values():
            self._counts[buffer.name] = self._counts.get(buffer.name, 0) + 1

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """Return a body with the merged buffers that belong in it, or in bodies inside."""
        new: list[Stmt] = []
        for stmt in body:
            buffer = allocation_of(stmt)
            if buffer is None or buffer.name not in self._merged:
                new.append(with_bodies(stmt, self.body))
        placed: list[Stmt] = []
        for name, merged in {buffer.name: buffer for buffer in self._merged.values()}.items():
            inside = self._count_allocations(body, name)
            if inside == self._counts[name] and not any(
                self._count_allocations((stmt,), name) == inside and allocation_of(stmt) is None
                for stmt in body
            ):
                placed.append(Allocate(merged))
        return (*placed, *new)

    def _count_allocations(self, body: tuple[Stmt, ...], name: str) -> int:
        """Return how many of the buffers that a merged one replaces are allocated in statements."""
        return sum(
            buffer.name in self._merged and self._merged[buffer.name].name == name
            for buffer in allocations(stmts(body))
        )


def _with_flat_accesses(
    body: tuple[Stmt, ...], originals: Mapping[str, Buffer], merged: Mapping[str, Buffer]
) -> tuple[Stmt, ...]:
    def rule(node: Node) -> Any | None:
        if isinstance(node, ELEMENT_NODES) and node.buffer in originals:
            flat = _flat_index(node.indices, originals[node.buffer].shape)
            return replace(node, buffer=merged[node.buffer].name, indices=(flat,))
        return None

    return rewrite_body(body, rule)


def _flat_index(indices: tuple[Expr, ...], shape: tuple[Expr, ...]) -> Expr:
    """Return the number of an element, or of the first one of a ramp, counted row by row."""
    offset: Expr = ZERO
    for dimension, (index_, extent) in enumerate(zip(indices, shape, strict=True)):
        if dimension:
            offset = mul(offset, extent)
        if isinstance(index_, Ramp):
            return replace(index_, base=add(offset, index_.base))
        offset = add(offset, index_)
    return offset
