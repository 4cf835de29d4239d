"""Products of warpgroups that run while threads go on, in loops whose copies run ahead.

An iteration begins a product, and waits for that of the iteration before: the tensor cores multiply while the
threads wait for copies and begin new ones. The copies must then leave the stage alone that the earlier
product may still read. `mark_overlap` marks such a loop, before its copies are made to run ahead, and
`overlap_products` changes it afterwards.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from gossamer_cuda_mma_sp.codegen.fragments.fragment_table import LANE_AXIS
from gossamer_ir.core.annotations import PENDING, PIPELINE, without_annotation
from gossamer_ir.core.build import ZERO
from gossamer_ir.nodes import For, If, Load, Module, Stmt, Store
from gossamer_ir.traversal.access_types import BUFFER_NODES
from gossamer_ir.traversal.buffer_definitions import allocations
from gossamer_ir.traversal.buffer_uses import buffers_read_in, buffers_written_outside, outer_writes
from gossamer_ir.traversal.names import Namer, namer_of
from gossamer_ir.traversal.walk import collect
from gossamer_llvm import WarpgroupProduct, WarpgroupWait, warp_instruction_of, warp_loop
from gossamer_support.items_by_name import items_by_name

_MIN_STAGES = 3
"""One is multiplied, one may still be read, and one is filled."""


class _Product(msgspec.Struct, frozen=True):
    """The loop over lanes that multiply together, the loop that stands for the instructions, and these."""

    lanes: For
    loop: For
    instruction: WarpgroupProduct

    @property
    def sums(self) -> tuple[Store, ...]:
        """The stores that name the accumulators."""
        stores = (stmt for stmt in self.loop.body if isinstance(stmt, Store))
        return tuple(stores)[: self.instruction.accumulators]


def mark_overlap(loop: For) -> For:
    """Return a loop with the annotation that the product of one iteration may be pending in the next one, if
    that is so: there are stages enough, each with its own A and B in shared memory, and nothing else in the
    loop accesses the sums."""
    stages = int(dict(loop.annotations).get(PIPELINE, 0))
    products = [product for stmt in loop.body if (product := _product_of(stmt)) is not None]
    if stages < _MIN_STAGES or len(products) != 1:
        return loop
    (product,) = products
    others = (stmt for stmt in loop.body if stmt is not product.lanes)
    accessed = {node.buffer for node in collect(BUFFER_NODES, *others)}
    if product.instruction.a_descriptor is None or product.sums[0].buffer in accessed:
        return loop
    if not _are_copied_ahead(product, loop):
        return loop
    return replace(loop, annotations=(*loop.annotations, (PENDING, 1)))


def _are_copied_ahead(product: _Product, loop: For) -> bool:
    """Return whether `pipeline_loops` runs all statements ahead that fill A and B, each stage of which then
    has elements of its own: they fill shared memory of the iteration only, by what it does not write."""
    operands = {load.buffer for load in collect(Load, *product.loop.body)[-2:]}
    numbers = [number for number, stmt in enumerate(loop.body) if operands & outer_writes((stmt,))]
    count = numbers[-1] + 1 if numbers else 0
    first, rest = loop.body[:count], loop.body[count:]
    written, written_after = (buffers_written_outside(body) for body in (first, rest))
    scopes = {buffer.name: buffer.scope for buffer in allocations(first)}
    return (
        operands <= written <= scopes.keys()
        and set(scopes.values()) == {"shared"}
        and written <= buffers_read_in(rest)
        and written_after.isdisjoint(written)
        and (written | written_after).isdisjoint(buffers_read_in(first))
    )


def overlap_products(module: Module) -> Module:
    """Return a flat module whose marked loops have products that are pending at the end of an iteration, and
    wait for the last one after the loop."""
    functions = items_by_name(module.functions)
    entry = functions[module.entry]
    changed = replace(entry, body=_in_body(entry.body, namer_of(entry)))
    return replace(
        module,
        functions=tuple(
            changed if function is entry else function for function in module.functions
        ),
    )


def _in_body(body: tuple[Stmt, ...], namer: Namer) -> tuple[Stmt, ...]:
    return tuple([new for stmt in body for new in _in_stmt(stmt, namer)])


# Other statements: no loops are in them.
def _in_stmt(stmt: Stmt, namer: Namer) -> tuple[Stmt, ...]:
    match stmt:
        case For() if PENDING in dict(stmt.annotations):
            return _overlap(stmt, namer)
        case For():
            return (replace(stmt, body=_in_body(stmt.body, namer)),)
        case If():
            sides = (_in_body(stmt.then_body, namer), _in_body(stmt.else_body, namer))
            return (If(stmt.condition, *sides),)
    return (stmt,)


def _overlap(loop: For, namer: Namer) -> tuple[Stmt, ...]:
    """Return a loop with a pending product, and the wait after it."""
    pending = int(dict(loop.annotations)[PENDING])
    (product,) = (product for stmt in loop.body if (product := _product_of(stmt)) is not None)
    begun = warp_loop(
        product.loop.var,
        replace(product.instruction, pending_groups=pending),
        _stores(product.loop),
    )
    wait = warp_loop(
        namer.fresh("wait"), WarpgroupWait(sums=product.instruction.sums), product.sums
    )
    body = tuple(
        replace(product.lanes, body=(begun,)) if stmt is product.lanes else stmt
        for stmt in loop.body
    )
    lanes = replace(product.lanes, var=namer.fresh("lane"), start=ZERO, body=(wait,))
    return (replace(without_annotation(loop, PENDING), body=body), lanes)


def _product_of(stmt: Stmt) -> _Product | None:
    """Return the product of warpgroups that a statement is; None for any other."""
    match stmt:
        case For(thread=thread, body=(For() as loop,)) if thread == LANE_AXIS:
            instruction = warp_instruction_of(loop)
            if isinstance(instruction, WarpgroupProduct):
                return _Product(stmt, loop, instruction)
    return None


def _stores(loop: For) -> tuple[Store, ...]:
    return tuple(stmt for stmt in loop.body if isinstance(stmt, Store))
