"""Loops over elements of fragments: each lane has its own, by stores, matrix loads, or loads of indices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from gossamer_cuda_mma_sp.codegen.fragments.fragment_layouts import FragmentLayout, Slot
from gossamer_cuda_mma_sp.codegen.fragments.fragment_table import (
    FragmentTable,
    fragment_access_error,
    run_by_lanes,
)
from gossamer_cuda_mma_sp.codegen.fragments.index_loads import index_loads
from gossamer_cuda_mma_sp.codegen.fragments.matrix_loads import matrix_loads, shared_tile
from gossamer_ir.core.build import ZERO, add, binary, index, index_var, integer_value, zero_of
from gossamer_ir.core.conditions import conjunction
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import (
    Binary,
    Buffer,
    Cast,
    Compare,
    Const,
    Expr,
    For,
    If,
    Let,
    Load,
    Node,
    Stmt,
    Store,
    Var,
)
from gossamer_ir.traversal.rewrite import rewrite
from gossamer_ir.traversal.substitute import resolve, substitute
from gossamer_ir.traversal.walk import collect


class _StoreInLoops(msgspec.Struct, frozen=True):
    """A store in loops over the elements of a fragment, and the conditions under which it runs."""

    store: Store
    loops: tuple[For, ...]
    conditions: tuple[Expr, ...]


def lower_elements(table: FragmentTable, loop: For) -> tuple[Stmt, ...]:
    """Return a nest over elements as statements for each slot of a lane."""
    elements = list(_stores((loop,), (), (), {}))
    layout = _layout_of(table, elements, loop)
    loads = _loads_from_shared(table, elements, layout)
    if loads:
        return run_by_lanes(table, loads)
    new: list[Stmt] = []
    cleared: set[int] = set()
    for slot in layout.slots:
        for element in elements:
            if slot.bit is not None and slot.number not in cleared:
                cleared.add(slot.number)
                at = (index(slot.number),)
                new.append(Store(element.store.buffer, at, zero_of(layout.dtype)))
            new.append(_for_slot(table, element, layout, slot))
    return run_by_lanes(table, new)


def _loads_from_shared(
    table: FragmentTable, elements: list[_StoreInLoops], layout: FragmentLayout
) -> list[Any]:
    """Return the instructions that fill a fragment from shared memory; empty if none can."""
    if len(elements) != 1 or elements[0].conditions:
        return []
    store = elements[0].store
    loaded = store.value.buffer if isinstance(store.value, Load) else None
    source = None if loaded is None else table.shared.get(loaded)
    fragment = table.buffers.get(store.buffer)
    if source is None or fragment is None:
        return []
    if layout.is_metadata:
        return _index_loads(table, elements[0], layout, source)
    tile = shared_tile(store, elements[0].loops, layout, fragment=fragment, source=source)
    if tile is None:
        return []
    return matrix_loads(tile, layout, table.lane, table.namer, lanes=table.lanes)


def _index_loads(
    table: FragmentTable, element: _StoreInLoops, layout: FragmentLayout, source: Buffer
) -> list[Any]:
    """Return the loads of metadata in words; empty if the loops are not over the whole fragment."""
    conditions = [
        condition
        for loop in element.loops
        for condition in _range(table, loop, element.store, {loop.var: index_var(loop.var)})
    ]
    return [] if conditions else index_loads(element.store, layout, source, table.namer)


def _layout_of(table: FragmentTable, elements: list[_StoreInLoops], loop: For) -> FragmentLayout:
    """Return the layout of the fragments in a nest, all of which must be the same."""
    accesses = [
        access
        for element in elements
        for access in collect((Load, Store), element.store)
        if access.buffer in table.buffers
    ]
    layouts = {table.layouts[access.buffer] for access in accesses}
    if len(layouts) != 1 or not elements:
        raise fragment_access_error(table, loop)
    (layout,) = layouts
    for element in elements:
        names = tuple(loop.var for loop in element.loops)
        for access in collect((Load, Store), element.store):
            if access.buffer in table.buffers:
                vars = [at.name if isinstance(at, Var) else "" for at in access.indices]
                if sorted(vars) != sorted(names):
                    raise fragment_access_error(table, loop)
        if layout.is_metadata and (element.conditions or len(elements) > 1):
            raise fragment_access_error(table, loop)
    return layout


def _for_slot(
    table: FragmentTable, element: _StoreInLoops, layout: FragmentLayout, slot: Slot
) -> Stmt:
    """Return the store of the element in a slot."""
    access = next(
        node for node in collect((Load, Store), element.store) if node.buffer in table.buffers
    )
    values = {
        at.name: value
        for at, value in zip(access.indices, slot.indices, strict=True)
        if isinstance(at, Var)
    }
    conditions = [
        *(in_range for loop in element.loops for in_range in _range(table, loop, access, values)),
        *(substitute(condition, values) for condition in element.conditions),
    ]
    if layout.is_metadata and conditions:
        raise fragment_access_error(table, element.loops[0])
    store = _in_slot(table, element.store, slot, values)
    condition = conjunction(*conditions)
    return store if condition is None else If(condition, (store,))


def _range(
    table: FragmentTable, loop: For, access: Load | Store, values: Mapping[str, Expr]
) -> Iterator[Expr]:
    """Yield the conditions that the value of a loop variable is in the range of the loop, unless that is
    all of a dimension."""
    dimension = access.indices.index(index_var(loop.var))
    size = table.buffers[access.buffer].shape[dimension]
    if loop.start == ZERO and integer_value(loop.extent) == integer_value(size):
        return
    value = values[loop.var]
    yield Compare("ge", value, loop.start)
    yield Compare("lt", value, add(loop.start, loop.extent))


def _in_slot(table: FragmentTable, store: Store, slot: Slot, values: Mapping[str, Expr]) -> Store:
    at = (index(slot.number),)

    def move_load(node: Node) -> Any | None:
        if isinstance(node, Load) and node.buffer in table.buffers:
            return replace(node, indices=at)
        return None

    value = substitute(rewrite(store.value, move_load), values)
    if store.buffer not in table.buffers:
        indices = tuple(substitute(position, values) for position in store.indices)
        return replace(store, indices=indices, value=value)
    if slot.bit is not None:
        bits = slot.metadata_bits(Cast("uint32", value))
        shifted = binary("shl", bits, Const("uint32", str(slot.bit))) if slot.bit else bits
        value = Binary("bitor", Load(store.buffer, at, "uint32"), shifted)
    return replace(store, indices=at, value=value)


def _stores(
    body: tuple[Stmt, ...],
    loops: tuple[For, ...],
    conditions: tuple[Expr, ...],
    values: Mapping[str, Expr],
) -> Iterator[_StoreInLoops]:
    """Yield the stores in a nest, without variables that it binds to values."""
    values = dict(values)
    for stmt in body:
        match stmt:
            case Let():
                values[stmt.var.name] = resolve(stmt.value, values)
            case For(kind="serial" | "unrolled", thread=None):
                loop = replace(
                    stmt,
                    start=resolve(stmt.start, values),
                    extent=resolve(stmt.extent, values),
                    body=(),
                )
                yield from _stores(stmt.body, (*loops, loop), conditions, values)
            case If():
                condition = resolve(stmt.condition, values)
                yield from _stores(stmt.then_body, loops, (*conditions, condition), values)
                if stmt.else_body:
                    raise UnsupportedError(
                        "cuda.fragment.access",
                        "A condition around elements of fragments has another branch.",
                        hint="Use two conditions without one.",
                    )
            case Store(predicate=None):
                yield _StoreInLoops(resolve(stmt, values), loops, conditions)
            case _:
                raise UnsupportedError(
                    "cuda.fragment.access",
                    f"A '{type(stmt).__name__}' is in a loop over the elements of fragments.",
                    hint="Only stores, conditions and variables can be there.",
                )
