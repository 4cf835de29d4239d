"""Products of whole fragments as matrix instructions, which determine how lanes hold the fragments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from gossamer_cuda_mma_sp.codegen.fragments.fragment_layouts import (
    FragmentLayout,
    TileCounts,
    TiledInstruction,
    a_layout,
    accumulator_layout,
    b_layout,
    metadata_layout,
)
from gossamer_cuda_mma_sp.codegen.fragments.fragment_table import (
    LANE_AXIS,
    FragmentTable,
    run_by_lanes,
)
from gossamer_cuda_mma_sp.codegen.fragments.matrix_products import MatrixProduct, matrix_product
from gossamer_cuda_mma_sp.codegen.fragments.warpgroup_loops import (
    rounded_buffers,
    warpgroup_instruction_of,
    warpgroup_loop,
)
from gossamer_cuda_mma_sp.instructions.matrix_instructions import (
    MatrixInstruction,
    matrix_instruction,
)
from gossamer_cuda_mma_sp.instructions.sparse_instructions import MMA_COLUMNS, MMA_ROWS
from gossamer_cuda_mma_sp.instructions.warpgroup_instructions import WarpgroupInstruction
from gossamer_cuda_mma_sp.target.gpu import Gpu
from gossamer_ir.core.build import index, index_var, integer_value
from gossamer_ir.core.limits import WARP_LANES
from gossamer_ir.core.statement_kinds import effects_of
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import Buffer, For, Function, Load, Stmt, Store, Var
from gossamer_ir.traversal.buffer_definitions import allocations
from gossamer_ir.traversal.names import namer_of
from gossamer_ir.traversal.walk import stmts
from gossamer_llvm import WarpProduct, warp_loop
from gossamer_support.message_texts import amount


def plan_fragments(function: Function, gpu: Gpu) -> FragmentTable:
    """Return the fragments of a function, with the layouts and the instructions of all products.

    Raises `UnsupportedError`: `cuda.fragment.product` for a fragment that is in no product or in several that
    need other layouts, `cuda.fragment.instruction` if the GPU has none for the dtypes and the shape.
    """
    every, namer = tuple(stmts(function.body)), namer_of(function)
    buffers, shared = (
        {buffer.name: buffer for buffer in allocations(every) if buffer.scope == scope}
        for scope in ("fragment", "shared")
    )
    loops = (stmt for stmt in every if isinstance(stmt, For))
    products = [
        product for loop in loops if (product := matrix_product(loop, buffers, shared)) is not None
    ]
    rounded = rounded_buffers(every)
    instructions = {
        product: warpgroup_instruction_of(product, buffers, gpu, rounded=rounded)
        if product.b_is_shared
        else _required_instruction(product, buffers, gpu)
        for product in dict.fromkeys(products)
    }
    lane = index_var(namer.fresh("lane"))
    _require_one_kind(instructions)
    threads = _threads_of_products(function.body, instructions, buffers, shared)
    tiles = {
        product: _tiles(product, instruction, threads[product])
        for product, instruction in instructions.items()
    }
    _require_as_many_warps(tiles)
    layouts = _layouts_in_all(buffers, instructions, tiles, lane)
    arrays = {buffer.name: buffer for buffer in function.buffers if isinstance(buffer, Buffer)}
    return FragmentTable(buffers, shared, arrays, layouts, instructions, tiles, lane, namer)


def _threads_of_products(
    body: tuple[Stmt, ...],
    products: Iterable[MatrixProduct],
    buffers: Mapping[str, Buffer],
    shared: Mapping[str, Buffer],
) -> dict[MatrixProduct, int]:
    """Return, for each product, the threads along the lanes that its kernel has in its own loops."""
    threads = dict.fromkeys(products, 0)
    for kernel in _kernels(body):
        loops = [stmt for stmt in stmts((kernel,)) if isinstance(stmt, For)]
        along = [integer_value(loop.extent) or 0 for loop in loops if loop.thread == LANE_AXIS]
        for loop in loops:
            product = matrix_product(loop, buffers, shared)
            if product is not None:
                threads[product] = max(threads[product], *along, 0)
    return threads


def _kernels(body: tuple[Stmt, ...]) -> Iterator[For]:
    """Yield the outermost loops over threads or blocks."""
    for stmt in body:
        if isinstance(stmt, For) and stmt.thread is not None:
            yield stmt
        else:
            for part in effects_of(stmt).bodies:
                yield from _kernels(part.stmts)


def _require_one_kind(instructions: Mapping[MatrixProduct, TiledInstruction]) -> None:
    if len({instruction.warps for instruction in instructions.values()}) > 1:
        raise UnsupportedError(
            "cuda.fragment.product",
            "Some products of the program read B in shared memory, and others in fragments.",
            hint="Four warps multiply by one in shared memory, one warp by others: use one kind.",
        )


def _require_as_many_warps(tiles: Mapping[MatrixProduct, TileCounts]) -> None:
    counts = sorted({tile.warps for tile in tiles.values()})
    if len(counts) > 1:
        raise UnsupportedError(
            "cuda.fragment.product",
            f"The fragments of the program are held by {amount(counts[0], 'warp')} in one kernel, and by "
            f"{amount(counts[-1], 'warp')} in another one.",
            hint=f"Copy operands by as many threads along '{LANE_AXIS}' in all kernels with fragments.",
        )


def _layouts_in_all(
    buffers: Mapping[str, Buffer],
    instructions: Mapping[MatrixProduct, TiledInstruction],
    tiles: Mapping[MatrixProduct, TileCounts],
    lane: Var,
) -> dict[str, FragmentLayout]:
    """Return the layout of each fragment, which all products it is in must need."""
    layouts: dict[str, FragmentLayout] = {}
    for product, instruction in instructions.items():
        in_product = _layouts_in(product, instruction, tiles[product], buffers, lane)
        for name, layout in in_product.items():
            if layouts.setdefault(name, layout) != layout:
                raise UnsupportedError(
                    "cuda.fragment.product",
                    f"The fragment '{name}' is in products that need different layouts.",
                    hint="Copy it to another fragment.",
                )
    for name in buffers:
        if name not in layouts:
            raise UnsupportedError(
                "cuda.fragment.product",
                f"The fragment '{name}' is not an operand of a product of whole fragments.",
                hint="Multiply with loops S[i, j] = S[i, j] + X[i, p] * Y[p, j] over all elements, or "
                "S[i, j] = S[i, j] + X[i, q, s] * Y[4 * q + M[i, q, s] % 4, j].",
            )
    return layouts


def _layouts_in(
    product: MatrixProduct,
    instruction: TiledInstruction,
    tiles: TileCounts,
    buffers: Mapping[str, Buffer],
    lane: Var,
) -> dict[str, FragmentLayout]:
    """Return the layouts of the fragments of a product."""
    dtypes = {name: buffer.dtype for name, buffer in buffers.items()}
    layouts = {
        product.accumulator: accumulator_layout(dtypes[product.accumulator], tiles, lane),
    }
    if not product.a_is_shared:
        layouts[product.a] = a_layout(dtypes[product.a], instruction, tiles, lane)
    if isinstance(instruction, MatrixInstruction):
        layouts[product.b] = b_layout(dtypes[product.b], instruction, tiles, lane)
    if product.metadata is not None:
        layouts[product.metadata] = metadata_layout(instruction, tiles, lane)
    return layouts


def _required_instruction(
    product: MatrixProduct, buffers: Mapping[str, Buffer], gpu: Gpu
) -> MatrixInstruction:
    (a, b), sums = product.operands, buffers[product.accumulator].dtype
    instruction = matrix_instruction(
        a, b, sums, depth=product.depth, is_sparse=product.metadata is not None, gpu=gpu
    )
    is_tiled = product.rows % MMA_ROWS == product.columns % MMA_COLUMNS == 0
    if instruction is None or not is_tiled:
        kind = "dense" if product.metadata is None else "sparse"
        raise UnsupportedError(
            "cuda.fragment.instruction",
            f"{gpu.architecture.name} with PTX {gpu.ptx} has no matrix instruction for a "
            f"{kind} {product.rows} by {product.depth} matrix of {a} times {b} with {product.columns} "
            f"columns into {sums}.",
            hint=f"Use multiples of {MMA_ROWS} rows and {MMA_COLUMNS} columns, and float16, bfloat16, "
            "int8, or float32 in `T.tf32`.",
        )
    return instruction


def lower_product(table: FragmentTable, product: MatrixProduct) -> tuple[Stmt, ...]:
    """Return the matrix instructions of a product, which the lanes of warps execute together."""
    instruction, tiles = table.instructions[product], table.tiles[product]
    if isinstance(instruction, WarpgroupInstruction):
        return run_by_lanes(table, [warpgroup_loop(table, product, instruction)])
    calls = [
        _call(table, product, instruction, (i, j, k))
        for k in range(tiles.depth)
        for i in range(tiles.rows)
        for j in range(tiles.columns)
    ]
    return run_by_lanes(table, calls)


def _call(
    table: FragmentTable,
    product: MatrixProduct,
    instruction: MatrixInstruction,
    tile: tuple[int, int, int],
) -> For:
    """Return the loop that stands for an instruction."""
    (i, j, k), tiles = tile, table.tiles[product]
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
        operands.append(Store(name, at, Load(name, at, table.layouts[name].dtype)))
    executed = WarpProduct(
        intrinsic=instruction.intrinsic,
        operand_type=instruction.operand_type,
        a_registers=instruction.a_registers,
        b_registers=instruction.b_registers,
        operand_bits=instruction.bits,
        rounds_to_tf32=instruction.a == "tfloat32",
    )
    return warp_loop(table.namer.fresh("product"), executed, tuple(operands))


def _tiles(product: MatrixProduct, instruction: TiledInstruction, threads: int) -> TileCounts:
    """Return the tiles of a product. Several warps, or warpgroups, hold its fragments together if a program
    has their threads."""
    if isinstance(instruction, MatrixInstruction):
        return _tiles_of_warps(product, instruction, threads)
    warps = instruction.warps
    if threads > WARP_LANES * warps:
        warps = threads // WARP_LANES
        if warps % instruction.warps or product.rows % (MMA_ROWS * warps):
            raise UnsupportedError(
                "cuda.fragment.threads",
                f"{threads} threads along '{LANE_AXIS}' cannot hold a tile of {product.rows} rows: a "
                "warpgroup of 128 threads has 64 rows.",
                hint="Use 128 threads, or as many for each 64 rows.",
            )
    return TileCounts(
        product.rows // (MMA_ROWS * warps),
        product.columns // MMA_COLUMNS,
        product.depth // instruction.depth,
        warps,
    )


def _tiles_of_warps(
    product: MatrixProduct, instruction: MatrixInstruction, threads: int
) -> TileCounts:
    """Return the tiles of a product of warps, in rows and columns such that each warp has the fewest elements
    of A and B: it loads them, and holds them in registers."""
    warps = max(1, threads // WARP_LANES)
    arrangements = [
        TileCounts(
            product.rows * count // (MMA_ROWS * warps),
            product.columns // (MMA_COLUMNS * count),
            product.depth // instruction.depth,
            warps,
            count,
        )
        for count in range(1, warps + 1)
        if warps % count == 0
        and product.rows * count % (MMA_ROWS * warps) == 0
        and product.columns % (MMA_COLUMNS * count) == 0
    ]
    if not arrangements or threads % WARP_LANES:
        raise UnsupportedError(
            "cuda.fragment.threads",
            f"{threads} threads along '{LANE_AXIS}' cannot hold a tile of {product.rows} rows and "
            f"{product.columns} columns: each warp of {WARP_LANES} threads has {MMA_ROWS} rows and "
            f"{MMA_COLUMNS} columns, or multiples of them.",
            hint=f"Use {WARP_LANES} threads, or as many for each part of the tile.",
        )

    def elements(tiles: TileCounts) -> int:
        a = tiles.rows * instruction.a_registers
        return a + tiles.columns * instruction.b_registers

    return min(arrangements, key=elements)
