"""Distributes fragments over the lanes of a warp: products become matrix instructions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from gossamer_cuda_mma_sp.codegen.fragments.fragment_layouts import (
    FragmentLayout,
    Slot,
    TileCounts,
    a_layout,
    accumulator_layout,
    b_layout,
    metadata_layout,
)
from gossamer_cuda_mma_sp.codegen.fragments.matrix_loads import matrix_loads, shared_tile
from gossamer_cuda_mma_sp.codegen.fragments.matrix_products import MatrixProduct, matrix_product
from gossamer_cuda_mma_sp.codegen.fragments.swizzle_shared import swizzle_shared
from gossamer_cuda_mma_sp.instructions.matrix_instructions import (
    MatrixInstruction,
    matrix_instruction,
)
from gossamer_cuda_mma_sp.instructions.sparse_instructions import MMA_COLUMNS, MMA_ROWS
from gossamer_cuda_mma_sp.target.gpu import Gpu
from gossamer_ir.core.build import ZERO, add, binary, index, index_var, integer_value, zero_of
from gossamer_ir.core.conditions import conjunction
from gossamer_ir.core.limits import WARP_LANES
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import (
    Allocate,
    Binary,
    Buffer,
    Cast,
    Compare,
    Const,
    Expr,
    For,
    Function,
    If,
    Let,
    Load,
    Module,
    Node,
    Stmt,
    Store,
    ThreadTag,
    Var,
)
from gossamer_ir.support.items_by_name import items_by_name
from gossamer_ir.traversal.access_types import BUFFER_NODES
from gossamer_ir.traversal.buffer_definitions import allocations
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.names import namer_of
from gossamer_ir.traversal.rewrite import rewrite
from gossamer_ir.traversal.substitute import resolve, substitute
from gossamer_ir.traversal.walk import collect, stmts
from gossamer_llvm import WarpProduct, warp_loop

LANE_AXIS: ThreadTag = "threadIdx.x"
"""The axis along which the threads of a block are the lanes of a warp."""


def lower_fragments(module: Module, gpu: Gpu) -> Module:
    """Return a flat module whose entry has no buffers in fragments.

    Each lane of a warp gets a buffer of its own for its elements of a fragment. A loop nest that multiplies
    whole fragments becomes matrix instructions, and one that fills a fragment of 16-bit elements from aligned
    rows of shared memory becomes matrix loads. Any other nest that reads or writes the elements of a fragment
    is distributed over the lanes: each handles its elements. All other statements remain.

    Raises `UnsupportedError`: `cuda.fragment.product` for a fragment that is in no product or in several that
    need other layouts, `cuda.fragment.instruction` if the GPU has none for the dtypes and the shape,
    `cuda.fragment.access` for any other access, and `cuda.fragment.threads` inside of a loop over lanes.
    """
    functions = items_by_name(module.functions)
    entry = functions[module.entry]
    if not any(buffer.scope == "fragment" for buffer in allocations(stmts(entry.body))):
        return module
    body = swizzle_shared(_FragmentLowerer(entry, gpu).body(entry.body))
    lowered = replace(entry, body=body)
    return replace(
        module,
        functions=tuple(
            lowered if function is entry else function for function in module.functions
        ),
    )


class _StoreInLoops(msgspec.Struct, frozen=True):
    """A store in loops over the elements of a fragment, and the conditions under which it runs."""

    store: Store
    loops: tuple[For, ...]
    conditions: tuple[Expr, ...]


class _FragmentLowerer:
    def __init__(self, function: Function, gpu: Gpu) -> None:
        self._gpu, self._namer = gpu, namer_of(function)
        every = tuple(stmts(function.body))
        self._fragments = {
            buffer.name: buffer for buffer in allocations(every) if buffer.scope == "fragment"
        }
        self._shared = {
            buffer.name: buffer for buffer in allocations(every) if buffer.scope == "shared"
        }
        self._lane = index_var(self._namer.fresh("lane"))
        self._layouts: dict[str, FragmentLayout] = {}
        self._instructions: dict[MatrixProduct, MatrixInstruction] = {}
        for loop in every:
            product = matrix_product(loop, self._fragments) if isinstance(loop, For) else None
            if product is not None and product not in self._instructions:
                self._add_layouts(product)
        for name in self._fragments:
            if name not in self._layouts:
                raise UnsupportedError(
                    "cuda.fragment.product",
                    f"The fragment '{name}' is not an operand of a product of whole fragments.",
                    hint="Multiply with loops S[i, j] = S[i, j] + X[i, p] * Y[p, j] over all elements, or "
                    "S[i, j] = S[i, j] + X[i, q, s] * Y[4 * q + M[i, q, s] % 4, j].",
                )

    # --- products ---------------------------------------------------------------------------

    def _add_layouts(self, product: MatrixProduct) -> None:
        instruction = self._required_instruction(product)
        tiles, lane = _tiles(product, instruction), self._lane
        self._instructions[product] = instruction
        dtypes = {name: buffer.dtype for name, buffer in self._fragments.items()}
        layouts = {
            product.accumulator: accumulator_layout(dtypes[product.accumulator], tiles, lane),
            product.a: a_layout(dtypes[product.a], instruction, tiles, lane),
            product.b: b_layout(dtypes[product.b], instruction, tiles, lane),
        }
        if product.metadata is not None:
            layouts[product.metadata] = metadata_layout(instruction, tiles, lane)
        for name, layout in layouts.items():
            if self._layouts.setdefault(name, layout) != layout:
                raise UnsupportedError(
                    "cuda.fragment.product",
                    f"The fragment '{name}' is in products that need different layouts.",
                    hint="Copy it to another fragment.",
                )

    def _required_instruction(self, product: MatrixProduct) -> MatrixInstruction:
        a, b, sums = (
            self._fragments[name].dtype for name in (product.a, product.b, product.accumulator)
        )
        instruction = matrix_instruction(
            a, b, sums, depth=product.depth, is_sparse=product.metadata is not None, gpu=self._gpu
        )
        is_tiled = product.rows % MMA_ROWS == product.columns % MMA_COLUMNS == 0
        if instruction is None or not is_tiled:
            kind = "dense" if product.metadata is None else "2:4"
            raise UnsupportedError(
                "cuda.fragment.instruction",
                f"{self._gpu.architecture.name} with PTX {self._gpu.ptx} has no matrix instruction for a "
                f"{kind} {product.rows} by {product.depth} matrix of {a} times {b} with {product.columns} "
                f"columns into {sums}.",
                hint=f"Use multiples of {MMA_ROWS} rows and {MMA_COLUMNS} columns, and float16, bfloat16 or "
                "int8.",
            )
        return instruction

    def _product(self, product: MatrixProduct) -> tuple[Stmt, ...]:
        instruction = self._instructions[product]
        tiles = _tiles(product, instruction)
        calls = [
            self._call(product, instruction, tiles, (i, j, k))
            for k in range(tiles.depth)
            for i in range(tiles.rows)
            for j in range(tiles.columns)
        ]
        return self._by_lanes(calls)

    def _call(
        self,
        product: MatrixProduct,
        instruction: MatrixInstruction,
        tiles: TileCounts,
        tile: tuple[int, int, int],
    ) -> For:
        """Return the loop that stands for an instruction."""
        i, j, k = tile
        p = instruction.register_elements
        firsts = {
            product.accumulator: 4 * (i * tiles.columns + j),
            product.a: (i * tiles.depth + k) * instruction.a_registers * p,
            product.b: (k * tiles.columns + j) * instruction.b_registers * p,
        }
        if product.metadata is not None:
            firsts[product.metadata] = i * tiles.depth + k
        operands = []
        for name, first in firsts.items():
            at = (index(first),)
            operands.append(Store(name, at, Load(name, at, self._layouts[name].dtype)))
        executed = WarpProduct(
            intrinsic=instruction.intrinsic,
            operand_type=instruction.operand_type,
            a_registers=instruction.a_registers,
            b_registers=instruction.b_registers,
        )
        return warp_loop(self._namer.fresh("product"), executed, tuple(operands))

    # --- statements -------------------------------------------------------------------------

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """Return the statements of a body for the lanes of a warp."""
        return tuple([new for stmt in body for new in self._stmt(stmt)])

    # Other statements: refused if they access fragments.
    def _stmt(self, stmt: Stmt) -> tuple[Stmt, ...]:
        if isinstance(stmt, Allocate) and stmt.buffer.name in self._layouts:
            layout = self._layouts[stmt.buffer.name]
            buffer = Buffer(stmt.buffer.name, (index(layout.size),), layout.dtype, scope="local")
            return (Allocate(buffer),)
        if not self._is_used(stmt):
            return (stmt,)
        match stmt:
            case For():
                product = matrix_product(stmt, self._fragments)
                if product is not None:
                    return self._product(product)
                if self._is_over_elements(stmt):
                    return self._elements(stmt)
                self._require_other_axis(stmt)
                return (replace(stmt, body=self.body(stmt.body)),)
            case If() if not self._is_used(stmt.condition):
                return (If(stmt.condition, self.body(stmt.then_body), self.body(stmt.else_body)),)
        raise self._access_error(stmt)

    # Other statements: refused if they access fragments.
    def _is_used(self, node: Node) -> bool:
        return any(
            access.buffer in self._fragments for access in collect(BUFFER_NODES, node)
        ) or any(
            buffer.name in self._fragments
            for buffer in (allocations(stmts((node,))) if isinstance(node, For | If) else ())
        )

    def _require_other_axis(self, loop: For) -> None:
        if loop.thread == LANE_AXIS:
            raise UnsupportedError(
                "cuda.fragment.threads",
                f"The loop '{loop.var}' is bound to '{LANE_AXIS}' around fragments, which all lanes of a "
                "warp hold together.",
                hint="Bind the loops around fragments to blocks, threadIdx.y or threadIdx.z.",
            )

    def _is_over_elements(self, loop: For) -> bool:
        """Return whether a loop selects elements of fragments."""
        return any(
            loop.var in free_vars(*access.indices)
            for access in collect((Load, Store), loop)
            if access.buffer in self._fragments
        )

    def _elements(self, loop: For) -> tuple[Stmt, ...]:
        """Return a nest over elements as statements for each slot of a lane."""
        elements = list(_stores((loop,), (), (), {}))
        layout = self._layout_of(elements, loop)
        loads = self._matrix_loads(elements, layout)
        if loads:
            return self._by_lanes(loads)
        new: list[Stmt] = []
        cleared: set[int] = set()
        for slot in layout.slots:
            for element in elements:
                if slot.bit is not None and slot.number not in cleared:
                    cleared.add(slot.number)
                    at = (index(slot.number),)
                    new.append(Store(element.store.buffer, at, zero_of(layout.dtype)))
                new.append(self._for_slot(element, layout, slot))
        return self._by_lanes(new)

    def _matrix_loads(self, elements: list[_StoreInLoops], layout: FragmentLayout) -> list[Any]:
        """Return the instructions that fill a fragment from shared memory; empty if none can."""
        if len(elements) != 1 or elements[0].conditions or layout.is_metadata:
            return []
        store = elements[0].store
        loaded = store.value.buffer if isinstance(store.value, Load) else None
        source = None if loaded is None else self._shared.get(loaded)
        fragment = self._fragments.get(store.buffer)
        if source is None or fragment is None:
            return []
        tile = shared_tile(store, elements[0].loops, layout, fragment=fragment, source=source)
        return [] if tile is None else matrix_loads(tile, layout, self._lane, self._namer)

    def _layout_of(self, elements: list[_StoreInLoops], loop: For) -> FragmentLayout:
        """Return the layout of the fragments in a nest, all of which must be the same."""
        accesses = [
            access
            for element in elements
            for access in collect((Load, Store), element.store)
            if access.buffer in self._fragments
        ]
        layouts = {self._layouts[access.buffer] for access in accesses}
        if len(layouts) != 1 or not elements:
            raise self._access_error(loop)
        (layout,) = layouts
        for element in elements:
            names = tuple(loop.var for loop in element.loops)
            for access in collect((Load, Store), element.store):
                if access.buffer in self._fragments:
                    vars = [at.name if isinstance(at, Var) else "" for at in access.indices]
                    if sorted(vars) != sorted(names):
                        raise self._access_error(loop)
            if layout.is_metadata and (element.conditions or len(elements) > 1):
                raise self._access_error(loop)
        return layout

    def _for_slot(self, element: _StoreInLoops, layout: FragmentLayout, slot: Slot) -> Stmt:
        """Return the store of the element in a slot."""
        access = next(
            node for node in collect((Load, Store), element.store) if node.buffer in self._fragments
        )
        values = {
            at.name: value
            for at, value in zip(access.indices, slot.indices, strict=True)
            if isinstance(at, Var)
        }
        conditions = [
            *(in_range for loop in element.loops for in_range in self._range(loop, access, values)),
            *(substitute(condition, values) for condition in element.conditions),
        ]
        if layout.is_metadata and conditions:
            raise self._access_error(element.loops[0])
        store = self._in_slot(element.store, slot, values)
        condition = conjunction(*conditions)
        return store if condition is None else If(condition, (store,))

    def _range(self, loop: For, access: Load | Store, values: Mapping[str, Expr]) -> Iterator[Expr]:
        """Yield the conditions that the value of a loop variable is in the range of the loop, unless that is
        all of a dimension."""
        dimension = access.indices.index(index_var(loop.var))
        size = self._fragments[access.buffer].shape[dimension]
        if loop.start == ZERO and integer_value(loop.extent) == integer_value(size):
            return
        value = values[loop.var]
        yield Compare("ge", value, loop.start)
        yield Compare("lt", value, add(loop.start, loop.extent))

    def _in_slot(self, store: Store, slot: Slot, values: Mapping[str, Expr]) -> Store:
        at = (index(slot.number),)

        def moved(node: Node) -> Any | None:
            if isinstance(node, Load) and node.buffer in self._fragments:
                return replace(node, indices=at)
            return None

        value = substitute(rewrite(store.value, moved), values)
        if store.buffer not in self._fragments:
            indices = tuple(substitute(position, values) for position in store.indices)
            return replace(store, indices=indices, value=value)
        if slot.bit is not None:
            bits = binary("bitand", Cast("uint32", value), Const("uint32", "3"))
            shifted = binary("shl", bits, Const("uint32", str(slot.bit))) if slot.bit else bits
            value = Binary("bitor", Load(store.buffer, at, "uint32"), shifted)
        return replace(store, indices=at, value=value)

    def _by_lanes(self, body: list[Any]) -> tuple[Stmt, ...]:
        """Return statements in a loop over the lanes of a warp, with a variable of its own."""
        lane = self._namer.fresh("lane")
        renamed = tuple(substitute(stmt, {self._lane.name: index_var(lane)}) for stmt in body)
        return (
            For(lane, ZERO, index(WARP_LANES), renamed, kind="thread_binding", thread=LANE_AXIS),
        )

    def _access_error(self, stmt: Stmt) -> UnsupportedError:
        names = {access.buffer for access in collect(BUFFER_NODES, stmt)} & self._fragments.keys()
        return UnsupportedError(
            "cuda.fragment.access",
            f"The elements of {', '.join(sorted(names))} are not accessed one by one in loops over fragments "
            "of one layout.",
            hint="Fill and store a fragment in loops over all its indices, as in X[i, p] = A[i, p].",
        )


def _tiles(product: MatrixProduct, instruction: MatrixInstruction) -> TileCounts:
    return TileCounts(
        product.rows // MMA_ROWS,
        product.columns // MMA_COLUMNS,
        product.depth // instruction.depth,
    )


# Other statements: refused if they access fragments.
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
