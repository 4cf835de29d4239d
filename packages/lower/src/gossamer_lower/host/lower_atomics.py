"""Accumulations into elements that parallel iterations share become atomic."""

from __future__ import annotations

from collections.abc import Set

from msgspec.structs import replace

from gossamer_ir.analysis.statements.atomic_accumulation import (
    ATOMIC_OPS,
    atomic_of,
    is_atomic,
    is_shared,
)
from gossamer_ir.core.annotations import ATOMIC, without_annotation
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import Atomic, For, Function, Module, Node, Stmt, Store
from gossamer_ir.traversal.access_types import READS
from gossamer_ir.traversal.buffer_definitions import buffers_allocated
from gossamer_ir.traversal.names import Namer, namer_of
from gossamer_ir.traversal.rewrite import rewrite_body
from gossamer_ir.traversal.walk import stmts, walk
from gossamer_lower.lowering_pass import lowering_pass, map_functions
from gossamer_lower.statements.lane_accumulation import accumulate_by_lane


@lowering_pass(
    takes=("flat",),
    acts_on="atomic loops",
    is_stable=True,
    after={
        "outline_parallel": "what an outlined function allocates is private to a thread",
        "vectorize_loops": "an accumulation of a vector becomes an atomic operation for each lane",
    },
)
def lower_atomics(module: Module) -> Module:
    """Make accumulations into shared elements atomic in loops annotated `atomic`.

    An accumulation of a vector becomes one for each lane. The annotation is removed. Raises
    `UnsupportedError` (`lower.lower_atomics.not_atomic`) if such a buffer is read, or written in another way.

    >>> from gossamer_testkit.examples import program
    >>> from gossamer_ir.script import print_module
    >>> from gossamer_lower import outline_parallel
    >>> before = program('''
    ... for i in T.parallel(n, annotations={"atomic": True}):
    ...     Y[P[i]] = Y[P[i]] + X[i]
    ... ''')
    >>> print(print_module(lower_atomics(outline_parallel(before))).partition("for ")[2])
    i in T.serial(begin, end):
            T.atomic_add(Y[P[i]], X[i])
    <BLANKLINE>
    """
    return map_functions(module, _lower_function)


def _lower_function(function: Function) -> Function:
    if not any(isinstance(stmt, For) and is_atomic(stmt) for stmt in stmts(function.body)):
        return function
    namer = namer_of(function)
    allocated = buffers_allocated(function.body)

    def rule(node: Node) -> For | None:
        return (
            _lower_loop(node, allocated, namer)
            if isinstance(node, For) and is_atomic(node)
            else None
        )

    return replace(function, body=rewrite_body(function.body, rule))


# Other statements: refused if they update what other threads update; only `Atomic` may.
def _lower_loop(loop: For, allocated: Set[str], namer: Namer) -> For:
    """Return the loop with atomic accumulations into shared buffers. Buffers that the function allocates
    (`allocated`) are not shared: each thread has its own."""

    def rule(node: Node) -> Stmt | tuple[Stmt, ...] | None:
        # Vectors were made before, so a store may have several lanes that share an element.
        if (
            not isinstance(node, Store)
            or node.buffer in allocated
            or not is_shared(loop, node.buffer)
        ):
            return None
        atomic = atomic_of(node) or accumulate_by_lane(node, namer)
        if atomic is None:
            raise _unsupported_error(node.buffer)
        return atomic

    body = rewrite_body(loop.body, rule)
    combined = {stmt.buffer for stmt in stmts(body) if isinstance(stmt, Atomic)}
    for node in walk(*body):
        # Another thread may be between the load and the store of such an element.
        if isinstance(node, READS) and node.buffer in combined:
            raise _unsupported_error(node.buffer)
    return replace(without_annotation(loop, ATOMIC), body=body)


def _unsupported_error(buffer_name: str) -> UnsupportedError:
    return UnsupportedError(
        "lower.lower_atomics.not_atomic",
        f"The atomic loop accesses '{buffer_name}' by something other than an atomic "
        f"{', '.join(ATOMIC_OPS[:-1])} or {ATOMIC_OPS[-1]}.",
        hint="Apply parallel_reduction instead of parallel.",
    )
