"""The signature of a flat module: its parameters, and how its buffers are used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from gossamer_ir.core.build import is_handle
from gossamer_ir.core.statement_kinds import CALLING_STMTS, WRITES, effects_of
from gossamer_ir.errors import VerifyError
from gossamer_ir.facts.fact_kinds import subject_of
from gossamer_ir.interchange.records import BufferParam, MemorySpace, ScalarParam, Signature
from gossamer_ir.nodes import Buffer, Expr, Function, Launch, Module, ParallelFor
from gossamer_ir.traversal.access_types import READS
from gossamer_ir.traversal.node_index import nodes_of_type
from gossamer_support.items_by_name import items_by_name
from gossamer_support.typed_calls import typed


class Usage(NamedTuple):
    """The handles, or the buffers, that a function reads, and those that it writes."""

    reads: set[str]
    writes: set[str]


@typed
def signature_of(
    module: Module, *, space: MemorySpace = "host", scratch: Expr | None = None
) -> Signature:
    """Return the signature of the entry of a verified flat module, for arrays in a memory space and scratch
    memory of a number of bytes that the caller provides.

    Reads and writes include those of the functions that the entry calls. Raises `VerifyError`:
    `signature.stage` for another stage, `signature.unbound` for a pointer parameter without a buffer.

    >>> from gossamer_ir.script import parse_module
    >>> flat = parse_module('''
    ... @T.prim_func
    ... def double(x: T.handle, n: T.int64) -> None:
    ...     T.stage("flat")
    ...     X = T.match_buffer(x, (n,), "float32")
    ...     for i in T.serial(n):
    ...         X[i] = X[i] * 2.0
    ... ''')
    >>> signature = signature_of(flat)
    >>> signature.order
    ('x', 'n')
    >>> [(buffer.name, buffer.is_read, buffer.is_written) for buffer in signature.buffers]
    [('x', True, True)]
    """
    if module.stage != "flat":
        raise VerifyError(
            "signature.stage",
            f"Only a flat module has a signature, but this module is at the stage '{module.stage}'.",
            hint="Lower it first.",
            place=("stage",),
        )
    functions = items_by_name(module.functions)
    entry = functions[module.entry]
    usage = _usage(entry, functions, {})
    bound = {buffer.handle: buffer for buffer in reversed(entry.buffers) if buffer.handle}
    buffers = tuple(
        _buffer_param(param.name, bound.get(param.name), entry, usage, space)
        for param in entry.params
        if param.dtype == "handle"
    )
    scalars = tuple(ScalarParam(p.name, p.dtype) for p in entry.params if p.dtype != "handle")
    order = tuple(param.name for param in entry.params)
    return Signature(entry.name, buffers, scalars, order, scratch)


def _buffer_param(
    handle: str, buffer: object, entry: Function, usage: Usage, space: MemorySpace
) -> BufferParam:
    if not isinstance(buffer, Buffer):
        raise VerifyError(
            "signature.unbound",
            f"No buffer of '{entry.name}' is bound to the pointer parameter '{handle}'.",
            hint="Remove the parameter, or bind a buffer to it.",
        )
    aliases = {bound.name for bound in entry.buffers if bound.handle == handle}
    return BufferParam(
        handle,
        buffer.name,
        buffer.dtype,
        buffer.shape,
        is_read=handle in usage.reads,
        is_written=handle in usage.writes,
        facts=tuple(fact for fact in entry.facts if subject_of(fact) in aliases),
        space=space,
    )


def _usage(function: Function, functions: Mapping[str, Function], done: dict[str, Usage]) -> Usage:
    """Return the handle parameters that a function reads and writes, directly or through its calls."""
    usage = done.get(function.name)
    if usage is not None:
        return usage
    reads = {node.buffer for node in nodes_of_type(function, *READS)}
    writes: set[str] = set()
    for stmt in nodes_of_type(function, *WRITES):
        writes.add(stmt.buffer)
        reads.update(read.buffer for read in effects_of(stmt).reads)
    for call in nodes_of_type(function, *CALLING_STMTS):
        callee = functions[call.function]
        below = _usage(callee, functions, done)
        _add_arguments(call, callee, below, Usage(reads, writes))
    handles = {buffer.name: buffer.handle or buffer.name for buffer in function.buffers}
    computed = Usage(*({handles.get(name, name) for name in names} for names in (reads, writes)))
    done[function.name] = computed
    return computed


def _add_arguments(call: ParallelFor | Launch, callee: Function, below: Usage, into: Usage) -> None:
    """Add the arguments that the callee reads and writes through its parameters."""
    skipped = 2 if isinstance(call, ParallelFor) else 0  # begin and end of a chunk
    for param, arg in zip(callee.params[skipped:], call.args, strict=True):
        name = _pointer(arg)
        if name is not None:
            for used, names in zip(below, into, strict=True):
                if param.name in used:
                    names.add(name)


def _pointer(arg: Expr) -> str | None:
    return arg.name if is_handle(arg) else None
