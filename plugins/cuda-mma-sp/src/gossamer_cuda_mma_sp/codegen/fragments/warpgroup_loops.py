"""Products of a sparse A in fragments and B in shared memory: instructions of four warps (`wgmma`)."""

from __future__ import annotations

from collections.abc import Mapping

from gossamer_cuda_mma_sp.codegen.fragments.fragment_layouts import TileCounts
from gossamer_cuda_mma_sp.codegen.fragments.fragment_table import FragmentTable
from gossamer_cuda_mma_sp.codegen.fragments.matrix_products import MatrixProduct
from gossamer_cuda_mma_sp.instructions.matrix_descriptors import (
    ATOM_SPANS,
    SPAN_BYTES,
    MatrixDescriptor,
)
from gossamer_cuda_mma_sp.instructions.warpgroup_instructions import (
    WARPGROUP_INSTRUCTIONS,
    WARPGROUP_ROWS,
    WarpgroupInstruction,
)
from gossamer_cuda_mma_sp.target.gpu import Gpu
from gossamer_ir.core.build import binary, index
from gossamer_ir.core.dtypes import DType
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import Buffer, Cast, Expr, For, Load, Store
from gossamer_llvm import WarpgroupProduct, warp_loop

_TFLOAT32 = "tfloat32"
"""The instruction cuts float32 in shared memory to TF32, and does not round it."""


def warpgroup_instruction_of(
    product: MatrixProduct, buffers: Mapping[str, Buffer], shared: Mapping[str, Buffer], gpu: Gpu
) -> WarpgroupInstruction:
    """Return the instruction for all columns of a product; raise `UnsupportedError`
    (`cuda.fragment.instruction`) if the GPU has none for the dtypes, the shape, or the order of B."""
    wanted = (product.columns, *product.operands, buffers[product.accumulator].dtype)
    span = _span(product, shared[product.b])
    for instruction in WARPGROUP_INSTRUCTIONS:
        dtypes = (instruction.a, instruction.b, instruction.accumulator)
        is_ordered = product.b_is_by_k or instruction.can_transpose
        if (
            (instruction.columns, *dtypes) == wanted
            and instruction.a != _TFLOAT32
            and instruction.is_on(gpu)
            and is_ordered
            and span in SPAN_BYTES
            and product.rows % WARPGROUP_ROWS == product.depth % instruction.depth == 0
        ):
            return instruction
    raise UnsupportedError(
        "cuda.fragment.instruction",
        f"{gpu.architecture.name} with PTX {gpu.ptx} has no matrix instruction of four warps for a sparse "
        f"{product.rows} by {product.depth} matrix of {product.operands[0]} times {product.operands[1]} in "
        f"shared memory, with {product.columns} columns in rows of {span} bytes, into {wanted[-1]}.",
        hint="Use an architecture with warpgroups, multiples of 64 rows, rows of 16, 32, 64 or 128 bytes in "
        "shared memory, and the columns of B as its rows unless it has elements of 16 bits; or copy B to a "
        "fragment.",
    )


def _span(product: MatrixProduct, b: Buffer) -> int:
    """Return the bytes of a row of B in shared memory."""
    return (
        (product.depth if product.b_is_by_k else product.columns) * DType.parse(b.dtype).bits // 8
    )


def warpgroup_loops(
    table: FragmentTable,
    product: MatrixProduct,
    instruction: WarpgroupInstruction,
    tiles: TileCounts,
) -> list[For]:
    """Return the loops that stand for the products of 64 rows each, along all of the depth."""
    span = _span(product, table.shared[product.b])
    atom = ATOM_SPANS * span
    # There is one atom along a span, so that only the stride along the other dimension matters.
    descriptor = MatrixDescriptor(0, span=span, stride=atom, leading=atom)
    executed = WarpgroupProduct(
        instruction=instruction.ptx_name,
        sums=instruction.sum_registers,
        operand_bits=instruction.bits,
        descriptor=descriptor.encode(),
        immediates=instruction.immediates(a_is_shared=False, b_is_by_k=product.b_is_by_k),
    )
    return [
        warp_loop(
            table.namer.fresh("product"), executed, _operands(table, product, instruction, tiles, i)
        )
        for i in range(tiles.rows)
    ]


def _operands(
    table: FragmentTable,
    product: MatrixProduct,
    instruction: WarpgroupInstruction,
    tiles: TileCounts,
    row: int,
) -> tuple[Store, ...]:
    """Return the stores that name the first elements of the operands, and one of an element of B that depends
    on the thread."""
    assert product.metadata is not None, "the product is sparse"
    of_a = instruction.a_registers * instruction.register_elements
    firsts = {
        product.accumulator: 4 * row * tiles.columns,
        product.a: row * tiles.depth * of_a,
        product.metadata: row * tiles.depth,
    }
    stores = []
    for name, first in firsts.items():
        at = (index(first),)
        stores.append(Store(name, at, Load(name, at, table.layouts[name].dtype)))
    sums, b = stores[0], table.shared[product.b]
    for k in range(tiles.depth):
        at_k, zero = index(k * instruction.depth), index(0)
        indices: tuple[Expr, ...] = (zero, at_k) if product.b_is_by_k else (at_k, zero)
        stores.append(_name_element(product.b, indices, b.dtype, sums=sums))
    # The instructions read all of B. Constant indices alone would be other elements than those stored at
    # other constants, and no barrier would be between them.
    anywhere = tuple(binary("floormod", table.lane, extent) for extent in b.shape)
    stores.append(_name_element(product.b, anywhere, b.dtype, sums=sums))
    return tuple(stores)


def _name_element(name: str, indices: tuple[Expr, ...], dtype: str, *, sums: Store) -> Store:
    """Return a store to the sums that names an element of a buffer."""
    return Store(sums.buffer, sums.indices, _as_sum(Load(name, indices, dtype), sums))


def _as_sum(loaded: Load, sums: Store) -> Expr:
    dtype = sums.value.dtype if isinstance(sums.value, Load) else loaded.dtype
    return loaded if dtype == loaded.dtype else Cast(dtype, loaded)
