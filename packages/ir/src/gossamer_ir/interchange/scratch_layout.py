"""The buffers of a flat module that can be parts of one block of memory, which the caller provides."""

from __future__ import annotations

import msgspec

from gossamer_ir.core.build import ZERO, add, ceildiv, index, mul, product
from gossamer_ir.core.dtypes import DType
from gossamer_ir.nodes import Allocate, Buffer, Expr, Load, Module
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.walk import walk
from gossamer_support.items_by_name import items_by_name
from gossamer_support.typed_calls import typed

SCRATCH_ALIGNMENT = 256
"""The alignment of each buffer in bytes, that of allocations of GPUs and of the widest transactions."""


class ScratchBuffer(msgspec.Struct, frozen=True):
    """A buffer, and its offset in bytes in the block."""

    buffer: Buffer
    offset: Expr


class ScratchLayout(msgspec.Struct, frozen=True):
    """The buffers in a block of scratch memory, and the bytes of the block; None without buffers."""

    buffers: tuple[ScratchBuffer, ...]
    size: Expr | None


# Other statements: nothing is concluded from them.
@typed
def scratch_layout(module: Module) -> ScratchLayout:
    """Return the layout of the buffers in global memory that the entry of a flat module allocates outside of
    loops and conditions, and whose sizes are expressions of its scalar parameters.

    A backend that cannot allocate while a kernel runs has the caller provide this block. Other allocations
    remain in the module.

    >>> from gossamer_ir.script import parse_module, print_expr
    >>> flat = parse_module('''
    ... @T.prim_func
    ... def sums(n: T.int64) -> None:
    ...     T.stage("flat")
    ...     X = T.alloc_buffer((n, 3), "float64")
    ...     Y = T.alloc_buffer((100,), "uint8")
    ... ''')
    >>> layout = scratch_layout(flat)
    >>> [(part.buffer.name, print_expr(part.offset)) for part in layout.buffers]
    [('X', '0'), ('Y', '(n * 3 * 8 + 255) // 256 * 256')]
    >>> print_expr(layout.size)
    '(n * 3 * 8 + 255) // 256 * 256 + 256'
    """
    entry = items_by_name(module.functions)[module.entry]
    scalars = {param.name for param in entry.params if param.dtype != "handle"}
    parts: list[ScratchBuffer] = []
    end: Expr = ZERO
    for stmt in entry.body:
        if isinstance(stmt, Allocate) and _can_be_provided(stmt.buffer, scalars):
            parts.append(ScratchBuffer(stmt.buffer, end))
            end = add(end, _rounded_bytes(stmt.buffer))
    return ScratchLayout(tuple(parts), end if parts else None)


def _can_be_provided(buffer: Buffer, scalars: set[str]) -> bool:
    """Return whether a buffer is in global memory and its size is known before the call."""
    is_known = all(
        free_vars(size) <= scalars and not any(isinstance(node, Load) for node in walk(size))
        for size in buffer.shape
    )
    return buffer.scope == "global" and is_known


def _rounded_bytes(buffer: Buffer) -> Expr:
    dtype = DType.parse(buffer.dtype)
    size = mul(product(buffer.shape), index((dtype.bits + 7) // 8))
    return mul(ceildiv(size, SCRATCH_ALIGNMENT), index(SCRATCH_ALIGNMENT))
