"""The program that packs metadata, interpreted, gives what NumPy gives."""

from __future__ import annotations

import numpy as np
import pytest
from n_m_matrices import random_n_m

from gossamer_cuda_mma_sp.instructions.metadata_register_programs import pack_metadata_program
from gossamer_cuda_mma_sp.instructions.metadata_registers import pack_metadata
from gossamer_cuda_mma_sp.instructions.sparse_instructions import SPARSE_INSTRUCTIONS
from gossamer_cuda_mma_sp.n_m.compress import compress
from gossamer_ir.interpret import run
from gossamer_ir.verify import verify


@pytest.mark.parametrize(
    "instruction", SPARSE_INSTRUCTIONS, ids=lambda each: f"{each.shape}-{each.operands[0]}"
)
def test_registers_are_those_of_numpy(instruction):
    # Rows and columns that do not fill a set of row tiles, and words of metadata that do not fill a tile.
    shape = (21, instruction.depth + instruction.element.pattern.group)
    dtype = instruction.operands[0]
    matrix = compress(random_n_m(np.random.default_rng(6), shape, dtype)[0], dtype)
    expected = pack_metadata(matrix, instruction)
    registers = np.ones_like(expected)
    sets, depth_tiles = registers.shape[:2]
    arrays = {"metadata": matrix.metadata.view(np.uint16), "registers": registers}
    sizes = {"m": shape[0], "words": matrix.metadata.shape[1]}
    tiles = {"sets": sets, "depth_tiles": depth_tiles}
    run(verify(pack_metadata_program(instruction)), arrays | sizes | tiles)
    np.testing.assert_array_equal(registers, expected)
