"""Distributes fragments over lanes, those of a warp or of four warps: products become matrix instructions."""

from __future__ import annotations

from msgspec.structs import replace

from gossamer_cuda_mma_sp.codegen.fragments.fragment_table import (
    LANE_AXIS,
    FragmentTable,
    accesses_fragment,
    fragment_access_error,
)
from gossamer_cuda_mma_sp.codegen.fragments.lower_elements import lower_elements
from gossamer_cuda_mma_sp.codegen.fragments.lower_products import lower_product, plan_fragments
from gossamer_cuda_mma_sp.codegen.fragments.matrix_products import matrix_product
from gossamer_cuda_mma_sp.codegen.fragments.overlap_products import mark_overlap
from gossamer_cuda_mma_sp.codegen.fragments.swizzle_shared import swizzle_shared
from gossamer_cuda_mma_sp.codegen.fragments.vectorize_copies import vectorize_copies
from gossamer_cuda_mma_sp.target.gpu import Gpu
from gossamer_ir.core.build import index
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import Allocate, Buffer, For, If, Load, Module, Node, Stmt, Store
from gossamer_ir.traversal.buffer_definitions import allocations
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.walk import collect, stmts
from gossamer_support.items_by_name import items_by_name


def lower_fragments(module: Module, gpu: Gpu) -> Module:
    """Return a flat module whose entry has no buffers in fragments.

    Each lane gets a buffer of its own for its elements of a fragment. A loop nest that multiplies
    whole fragments becomes matrix instructions, and one that fills a fragment of 16-bit elements from aligned
    rows of shared memory becomes matrix loads. Any other nest that reads or writes the elements of a fragment
    is distributed over the lanes: each handles its elements. All other statements remain.

    Raises `UnsupportedError`:

    - `cuda.fragment.product`: a fragment is in no product, or in several that need other layouts, or products
      of warps are beside those of four warps
    - `cuda.fragment.instruction`: the GPU has no instruction for the dtypes and the shape
    - `cuda.fragment.access`: another access, or a tile in shared memory that cannot be swizzled
    - `cuda.fragment.threads`: a fragment inside of a loop over lanes
    """
    functions = items_by_name(module.functions)
    entry = functions[module.entry]
    if not any(buffer.scope == "fragment" for buffer in allocations(stmts(entry.body))):
        return module
    body = swizzle_shared(_lower_body(plan_fragments(entry, gpu), entry.body))
    lowered = replace(entry, body=body)
    return replace(
        module,
        functions=tuple(
            lowered if function is entry else function for function in module.functions
        ),
    )


def _lower_body(table: FragmentTable, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Return the statements of a body for the lanes that hold fragments."""
    return tuple([new for stmt in body for new in _lower_stmt(table, stmt)])


def _lower_stmt(table: FragmentTable, stmt: Stmt) -> tuple[Stmt, ...]:
    if isinstance(stmt, Allocate) and stmt.buffer.name in table.layouts:
        layout = table.layouts[stmt.buffer.name]
        buffer = Buffer(stmt.buffer.name, (index(layout.size),), layout.dtype, scope="local")
        return (Allocate(buffer),)
    if not _uses_fragment(table, stmt):
        return (stmt,)
    match stmt:
        case For():
            product = matrix_product(stmt, table.buffers, table.shared)
            if product is not None:
                return lower_product(table, product)
            if _is_over_elements(table, stmt):
                return lower_elements(table, stmt)
            _require_other_axis(stmt)
            loop = vectorize_copies(stmt, table)
            return (mark_overlap(replace(loop, body=_lower_body(table, loop.body))),)
        case If() if not _uses_fragment(table, stmt.condition):
            return (
                If(
                    stmt.condition,
                    _lower_body(table, stmt.then_body),
                    _lower_body(table, stmt.else_body),
                ),
            )
    raise fragment_access_error(table, stmt)


def _uses_fragment(table: FragmentTable, node: Node) -> bool:
    return accesses_fragment(table, node) or any(
        buffer.name in table.buffers
        for buffer in (allocations(stmts((node,))) if isinstance(node, For | If) else ())
    )


def _require_other_axis(loop: For) -> None:
    if loop.thread == LANE_AXIS:
        raise UnsupportedError(
            "cuda.fragment.threads",
            f"The loop '{loop.var}' is bound to '{LANE_AXIS}' around fragments, which all lanes "
            "along it hold together.",
            hint="Bind the loops around fragments to blocks, threadIdx.y or threadIdx.z.",
        )


def _is_over_elements(table: FragmentTable, loop: For) -> bool:
    """Return whether a loop selects elements of fragments."""
    return any(
        loop.var in free_vars(*access.indices)
        for access in collect((Load, Store), loop)
        if access.buffer in table.buffers
    )
