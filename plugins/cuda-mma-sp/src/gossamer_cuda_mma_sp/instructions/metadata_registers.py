"""The registers that supply metadata to `mma.sp`: fragment order.

The lanes that supply it are chosen by the sparsity selector. Row tiles with different selectors therefore
share one register in each lane, and one load of 128 bytes by a warp is enough for them: 4, 2 or 1 row
tiles, as there are selectors.
"""

from __future__ import annotations

from gossamer_cuda_mma_sp.instructions.operand_registers import require_operand, require_registers
from gossamer_cuda_mma_sp.instructions.sparse_instructions import (
    MMA_ROWS,
    SparseInstruction,
    require_selector,
)
from gossamer_cuda_mma_sp.n_m.compressed_matrix import CompressedMatrix, padded_nibbles
from gossamer_cuda_mma_sp.n_m.metadata_words import (
    nibbles_of_words,
    require_legal,
    words_of_nibbles,
)
from gossamer_ir.core.limits import WARP_LANES
from gossamer_support.arrays import Array
from gossamer_support.typed_calls import typed


@typed
def supplying_lanes(instruction: SparseInstruction, selector: int) -> tuple[int, ...]:
    """Return the lanes whose registers supply the metadata of an instruction with a sparsity selector.

    Those are, of each quad, lane f for the selector f of four; lanes 2 * f and 2 * f + 1 for the selector f
    of two; and all lanes if there is one selector (PTX ISA, "Sparse matrix storage"). Raises
    `ArgumentError` (`n_m.selector`).

    >>> from gossamer_cuda_mma_sp.instructions.sparse_instructions import sparse_instruction
    >>> supplying_lanes(sparse_instruction("m16n8k32", "float16"), 1)[:6]
    (2, 3, 6, 7, 10, 11)
    """
    require_selector(instruction, selector)
    lanes = 4 // len(instruction.selectors)
    return tuple(lane for lane in range(WARP_LANES) if lane % 4 // lanes == selector)


@typed
def pack_metadata(matrix: CompressedMatrix, instruction: SparseInstruction) -> Array:
    """Return the registers of the metadata: uint32, sets of row tiles by depth tiles by lanes.

    A set has as many row tiles as the instruction has selectors: with s of them, the row tile i is read from
    `[i // s, depth tile]` with the selector `i % s`. Rows are padded to whole sets, and columns to a multiple
    of the depth, with groups of zeros.

    In a register of float16, bfloat16 and tfloat32, the low half has four groups of row g of the tile, the
    high half those of row g + 8: groups 0 to 3, or for the larger depth `4 * (t % 2)` and the following. In
    one of 8 and 4 bits, all of it has eight groups of row `g + 8 * (t % 2)`: groups 0 to 7, or for the
    larger depth `8 * (t // 2)` and the following. The source is the PTX ISA ("Sparse matrix storage").

    Raises `ArgumentError` (`n_m.operand`) if the instruction is for other dtypes.

    >>> import numpy as np
    >>> from gossamer_cuda_mma_sp.n_m.compress import compress
    >>> from gossamer_cuda_mma_sp.instructions.sparse_instructions import sparse_instruction
    >>> pair = compress(np.array([[0, 0, 3, 5]], np.float16))
    >>> hex(pack_metadata(pair, sparse_instruction("m16n8k32", "float16"))[0, 0, 0])
    '0x4444444e'
    """
    require_operand(matrix.dtype, instruction)
    s, h, q = register_splits(instruction)
    nibbles = padded_nibbles(matrix, rows=s * MMA_ROWS, groups=instruction.groups)
    sets, depth_tiles = nibbles.shape[0] // (s * MMA_ROWS), nibbles.shape[1] // instruction.groups
    tiles = nibbles.reshape(sets, s, 2, 8, depth_tiles, h, q)
    lanes = tiles.transpose(0, 4, 3, 1, 5, 2, 6)
    return words_of_nibbles(lanes.reshape(sets, depth_tiles, WARP_LANES * 8), "uint32")


@typed
def unpack_metadata(registers: Array, instruction: SparseInstruction) -> Array:
    """Return the nibbles that registers of metadata hold: the inverse of `pack_metadata`.

    `registers` has sets of row tiles by depth tiles by lanes, uint32. The result is uint8 and
    has the rows and groups of all tiles; `compressed_matrix` takes it as words (`words_of_nibbles`).

    Raises `ArgumentError` (`n_m.registers`: a wrong shape or dtype), and `FormatError`
    (`n_m.metadata`) with the position of the first illegal nibble.

    >>> import numpy as np
    >>> from gossamer_cuda_mma_sp.n_m.compress import compress
    >>> from gossamer_cuda_mma_sp.instructions.sparse_instructions import sparse_instruction
    >>> k32 = sparse_instruction("m16n8k32", "float16")
    >>> unpack_metadata(pack_metadata(compress(np.array([[0, 0, 3, 5]], np.float16)), k32), k32)[0]
    array([14,  4,  4,  4,  4,  4,  4,  4], dtype=uint8)
    """
    require_registers(registers[..., None], 1)
    s, h, q = register_splits(instruction)
    sets, depth_tiles = registers.shape[:2]
    lanes = nibbles_of_words(registers).reshape(sets, depth_tiles, 8, s, h, 2, q)
    tiles = lanes.transpose(0, 3, 5, 2, 1, 4, 6)
    nibbles = tiles.reshape(sets * s * MMA_ROWS, depth_tiles * instruction.groups)
    require_legal(nibbles, instruction.element.pattern)
    return nibbles


def register_splits(instruction: SparseInstruction) -> tuple[int, int, int]:
    """Return the row tiles of a set, the parts in which lanes hold a row, and the groups of such a part.

    With parts of four groups, a register holds those of two rows; with parts of eight, two lanes do. The
    order of the nibbles in a quad is the same: row tile, part, half of the rows, group.
    """
    groups = 4 if instruction.element.bits >= 16 else 8
    return len(instruction.selectors), instruction.groups // groups, groups
