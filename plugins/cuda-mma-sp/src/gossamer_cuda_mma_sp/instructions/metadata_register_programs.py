"""`pack_metadata` as a program of the language: metadata in row order to registers, on a device."""

from __future__ import annotations

from gossamer_cuda_mma_sp.instructions.metadata_registers import register_splits
from gossamer_cuda_mma_sp.instructions.sparse_instructions import MMA_ROWS, SparseInstruction
from gossamer_cuda_mma_sp.n_m.metadata_words import UNUSED_NIBBLE, groups_of_word
from gossamer_ir import parse_module
from gossamer_ir.core.limits import WARP_LANES
from gossamer_ir.nodes import Module
from gossamer_support.typed_calls import typed

_PACK = """
@T.prim_func
def pack_metadata(
    metadata: T.handle, registers: T.handle,
    m: T.int64, words: T.int64, sets: T.int64, depth_tiles: T.int64,
) -> None:
    I = T.sp.dense_fixed(m)
    W = T.sp.dense_fixed(words)
    SETS = T.sp.dense_fixed(sets)
    D = T.sp.dense_fixed(depth_tiles)
    L = T.sp.dense_fixed({lanes})
    N = T.sp.dense_fixed(8)
    METADATA = T.sp.match_buffer(metadata, (I, W), "{word_dtype}")
    REGISTERS = T.sp.match_buffer(registers, (SETS, D, L), "uint32")
    NIBBLE = T.sp.alloc_buffer((SETS, D, L, N), "int64")
    with T.sp.iteration([SETS, D, L, N], "SSSS", "nibbles") as [t, d, l, j]:
        NIBBLE[t, d, l, j] = {unused}
        if {row} < m and {group} // {groups} < words:
            NIBBLE[t, d, l, j] = T.int64(METADATA[{row}, {group} // {groups}]) >> {shift} & 15
    with T.sp.iteration([SETS, D, L, N], "SSSR", "registers") as [t, d, l, j]:
        with T.init():
            REGISTERS[t, d, l] = T.uint32(0)
        REGISTERS[t, d, l] = REGISTERS[t, d, l] + T.uint32(NIBBLE[t, d, l, j] << 4 * j)
"""


@typed
def pack_metadata_program(
    instruction: SparseInstruction, *, metadata_dtype: str = "int16"
) -> Module:
    """Return the program that computes what `pack_metadata` does, at the coordinate stage.

    Its arguments are `metadata` in row order, m by `words`, of unsigned integers with as many bits as
    `metadata_dtype`; `registers` (uint32), `sets` of row tiles by `depth_tiles` by 32 lanes; and these sizes.
    Tiles that reach beyond the metadata are padded with the metadata of groups of zeros.

    Raises `ArgumentError`: `n_m.metadata_dtype`.

    >>> import numpy as np
    >>> from gossamer_ir.interpret import run
    >>> from gossamer_cuda_mma_sp.instructions.sparse_instructions import sparse_instruction
    >>> registers = np.zeros((1, 1, 32), "uint32")
    >>> arrays = {"metadata": np.array([[0x4E]], "uint8"), "registers": registers}
    >>> sizes = {"m": 1, "words": 1, "sets": 1, "depth_tiles": 1}
    >>> k32 = sparse_instruction("m16n8k32", "float16")
    >>> run(pack_metadata_program(k32, metadata_dtype="int8"), arrays | sizes)
    >>> hex(registers[0, 0, 0])
    '0x4444444e'
    """
    tiles, parts, groups = register_splits(instruction)
    # The nibbles of a quad are in the order of row tiles, parts, halves of the rows, and groups.
    at = "(l * 8 + j)"
    half, part = f"{at} // {groups} % 2", f"{at} // {2 * groups} % {parts}"
    tile = f"{at} // {2 * groups * parts} % {tiles}"
    row = f"((t * {tiles} + {tile}) * {MMA_ROWS} + {half} * 8 + l // 4)"
    group = f"(d * {instruction.groups} + {part} * {groups} + {at} % {groups})"
    text = _PACK.format(
        lanes=WARP_LANES,
        word_dtype=f"u{metadata_dtype}",
        unused=UNUSED_NIBBLE,
        row=row,
        group=group,
        shift=f"4 * ({group} % {groups_of_word(metadata_dtype)})",
        groups=groups_of_word(metadata_dtype),
    )
    return parse_module(text)
