"""Products of a sparse A, in fragments or shared memory, and B in shared memory, by four warps (`wgmma`).

A row in shared memory is divided into spans of at most 128 bytes, as descriptors have them: the spans of
all rows at the same place are stored one after the other (`swizzle_shared`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set

from gossamer_cuda_mma_sp.codegen.fragments.fragment_table import FragmentTable
from gossamer_cuda_mma_sp.codegen.fragments.matrix_products import MatrixProduct
from gossamer_cuda_mma_sp.instructions.matrix_descriptors import (
    ATOM_SPANS,
    CHUNK_BYTES,
    SPAN_BYTES,
    MatrixDescriptor,
)
from gossamer_cuda_mma_sp.instructions.sparse_instructions import MMA_ROWS
from gossamer_cuda_mma_sp.instructions.warpgroup_instructions import (
    WARPGROUP_INSTRUCTIONS,
    WARPGROUP_LANES,
    WARPGROUP_ROWS,
    WarpgroupInstruction,
)
from gossamer_cuda_mma_sp.target.gpu import Gpu
from gossamer_ir.core.build import add, binary, floordiv, index, integer_value, mul, zero_of
from gossamer_ir.core.dtypes import DType
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import Buffer, Call, Cast, Const, Expr, For, IfThenElse, Load, Stmt, Store
from gossamer_llvm import WarpgroupProduct, warp_loop

_TFLOAT32 = "tfloat32"
"""The instruction cuts float32 in shared memory to TF32, and does not round it."""


def rounded_buffers(body: Iterable[Stmt]) -> frozenset[str]:
    """Return the buffers to which statements store only values that are rounded to TF32."""
    stores = [stmt for stmt in body if isinstance(stmt, Store)]
    others = {store.buffer for store in stores if not _is_rounded(store.value)}
    return frozenset(store.buffer for store in stores) - others


# Other expressions: they may have more bits.
def _is_rounded(value: Expr) -> bool:
    match value:
        case Call(function="tf32"):
            return True
        case IfThenElse():
            return _is_rounded(value.if_true) and _is_rounded(value.if_false)
        case Const():
            return value == zero_of(value.dtype)
    return False


def warpgroup_instruction_of(
    product: MatrixProduct, buffers: Mapping[str, Buffer], gpu: Gpu, *, rounded: Set[str]
) -> WarpgroupInstruction:
    """Return the instruction for a product that has the most columns; several of it have all. In TF32, it
    needs both operands in shared memory, `rounded` when they are stored. Raises `UnsupportedError`
    (`cuda.fragment.instruction`) if the GPU has none for the dtypes, the shape, or the order of B."""
    wanted = (*product.operands, buffers[product.accumulator].dtype)
    suitable = [
        instruction
        for instruction in WARPGROUP_INSTRUCTIONS
        if (instruction.a, instruction.b, instruction.accumulator) == wanted
        and (instruction.a != _TFLOAT32 or {product.a, product.b} <= rounded)
        and not instruction.saturates
        and instruction.is_on(gpu)
        and (product.b_is_by_k or instruction.can_transpose)
        and product.rows % WARPGROUP_ROWS == product.depth % instruction.depth == 0
        and product.columns % instruction.columns == 0
    ]
    if not suitable:
        raise UnsupportedError(
            "cuda.fragment.instruction",
            f"{gpu.architecture.name} with PTX {gpu.ptx} has no matrix instruction of four warps for a "
            f"sparse {product.rows} by {product.depth} matrix of {product.operands[0]} times "
            f"{product.operands[1]} in shared memory, with {product.columns} columns, into {wanted[-1]}.",
            hint="Use an architecture with warpgroups, multiples of 64 rows and of 8 columns, and the "
            "columns of B as rows in shared memory unless it has elements of 16 bits; in TF32, round A and B "
            "by `T.tf32` when they are stored there. Or copy B to a fragment.",
        )
    return max(suitable, key=lambda instruction: instruction.columns)


def warpgroup_loop(
    table: FragmentTable, product: MatrixProduct, instruction: WarpgroupInstruction
) -> For:
    """Return the loop that stands for all instructions of a product."""
    tiles, groups = table.tiles[product], _column_groups(product, instruction)
    executed = WarpgroupProduct(
        instruction=instruction.ptx_name,
        sums=instruction.sum_registers,
        accumulators=tiles.rows * groups,
        steps=tiles.depth,
        operand_bits=instruction.bits,
        descriptor=_descriptor_of_b(product, instruction, table.shared[product.b]).encode(),
        a_descriptor=_descriptor_of_a(table, product),
        immediates=instruction.immediates(
            a_is_shared=product.a_is_shared, b_is_by_k=product.b_is_by_k
        ),
    )
    stores = (
        *_name_sums(table, product, instruction),
        *_name_factors(table, product, instruction),
        *(_name_anywhere(table, product, name) for name in _shared_operands(product)),
    )
    return warp_loop(table.namer.fresh("product"), executed, stores)


def _column_groups(product: MatrixProduct, instruction: WarpgroupInstruction) -> int:
    """Return the instructions along the columns."""
    return product.columns // instruction.columns


def _shared_operands(product: MatrixProduct) -> tuple[str, ...]:
    return (product.a, product.b) if product.a_is_shared else (product.b,)


def _descriptor_of_a(table: FragmentTable, product: MatrixProduct) -> int | None:
    """Return the descriptor of A without its address; None if A is in registers."""
    if not product.a_is_shared:
        return None
    row = integer_value(table.shared[product.a].shape[-1])
    assert row is not None, "products have constant shapes"
    span = _longest_span(row * _element_bytes(table.shared[product.a]))
    return MatrixDescriptor(0, span=span, stride=ATOM_SPANS * span).encode()


def _longest_span(row: int) -> int:
    """Return the bytes of the longest span that divides a row."""
    return max(span for span in SPAN_BYTES if row % span == 0)


def _element_bytes(buffer: Buffer) -> int:
    return DType.parse(buffer.dtype).bits // 8


def _descriptor_of_b(
    product: MatrixProduct, instruction: WarpgroupInstruction, b: Buffer
) -> MatrixDescriptor:
    """Return the descriptor of B without its address. Along K, each instruction has a part of a span."""
    row = product.depth if product.b_is_by_k else instruction.columns
    span = _longest_span(row * _element_bytes(b))
    atom = ATOM_SPANS * span
    if product.b_is_by_k:
        return MatrixDescriptor(0, span=span, stride=atom)
    along, across = product.depth * span, atom
    if span == CHUNK_BYTES:
        along, across = across, along
    return MatrixDescriptor(0, span=span, stride=across, leading=along)


def _name_sums(
    table: FragmentTable, product: MatrixProduct, instruction: WarpgroupInstruction
) -> Iterator[Store]:
    """Yield the stores that name the first element of each accumulator."""
    elements = instruction.columns // 2
    for number in range(table.tiles[product].rows * _column_groups(product, instruction)):
        yield _name_in_lane(table, product.accumulator, number * elements)


def _name_factors(
    table: FragmentTable, product: MatrixProduct, instruction: WarpgroupInstruction
) -> Iterator[Store]:
    """Yield the stores that name A, its metadata and B, along the depth and there for each accumulator."""
    assert product.metadata is not None, "the product is sparse"
    tiles = table.tiles[product]
    elements_of_a = instruction.a_registers * instruction.register_elements
    for k in range(tiles.depth):
        for row in range(tiles.rows):
            number = row * tiles.depth + k
            for group in range(_column_groups(product, instruction)):
                if product.a_is_shared:
                    yield _name_element(
                        table, product, product.a, _first_of_a(table, product, row, k)
                    )
                else:
                    yield _name_in_lane(table, product.a, number * elements_of_a)
                yield _name_in_lane(table, product.metadata, number)
                at = (index(k * instruction.depth), index(group * instruction.columns))
                at = at[::-1] if product.b_is_by_k else at
                yield _name_element(table, product, product.b, at)


def _first_of_a(
    table: FragmentTable, product: MatrixProduct, row: int, k: int
) -> tuple[Expr, Expr]:
    """Return the indices of the first element of A that a warpgroup multiplies by an instruction."""
    tiles = table.tiles[product]
    width = integer_value(table.shared[product.a].shape[-1])
    assert width is not None, "products have constant shapes"
    warpgroup = floordiv(table.lane, index(WARPGROUP_LANES))
    first = add(index(row * MMA_ROWS * tiles.warps), mul(warpgroup, index(WARPGROUP_ROWS)))
    return first, index(k * width // tiles.depth)


def _name_anywhere(table: FragmentTable, product: MatrixProduct, name: str) -> Store:
    """Return a store that names an element that depends on the thread: the instructions read all of a tile.
    Constant indices alone would be other elements than those stored at other constants, and no barrier would
    be between them."""
    shape = table.shared[name].shape
    anywhere = tuple(binary("floormod", table.lane, extent) for extent in shape)
    return _name_element(table, product, name, anywhere)


def _name_in_lane(table: FragmentTable, name: str, first: int) -> Store:
    """Return a store that names an element of what a lane holds of a fragment."""
    at = (index(first),)
    return Store(name, at, Load(name, at, table.layouts[name].dtype))


def _name_element(
    table: FragmentTable, product: MatrixProduct, name: str, indices: tuple[Expr, ...]
) -> Store:
    """Return a store to the sums that names an element of a buffer in shared memory."""
    sums, buffer = table.layouts[product.accumulator].dtype, table.shared[name]
    loaded = Load(buffer.name, indices, buffer.dtype)
    value: Expr = loaded if sums == buffer.dtype else Cast(sums, loaded)
    return Store(product.accumulator, (index(0),), value)
