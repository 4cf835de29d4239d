"""Operands are stored in their formats; one without a place for lookups is refused."""

import numpy as np
import pytest
import scipy.sparse

from gossamer.einsum_programs.dense_program import EinsumProgram
from gossamer.einsum_programs.stored_operands import program_over_formats
from gossamer.einsum_programs.subscripts import parse_subscripts
from gossamer_formats import SparseTensor, csr
from gossamer_ir.errors import ArgumentError


def test_the_result_of_a_pattern_shares_the_axes_of_the_iterated_operand():
    program = EinsumProgram(parse_subscripts("ij,i->ij"), "float32", 0)
    (function,) = program_over_formats(program, {0: csr("float32")}, {}).functions
    axes = {buffer.name: buffer.axes for buffer in function.buffers}
    assert axes["Out_x0"] == axes["X0_x0"] == ("I_x0", "J_x0")


def test_blocks_cannot_be_looked_up():
    program = EinsumProgram(parse_subscripts("ij,ij->ij"), "float32", 0)
    matrix = SparseTensor(scipy.sparse.eye_array(4, dtype=np.float32))
    blocks = matrix.asformat("bsr", block_rows=2, block_columns=2).description
    with pytest.raises(ArgumentError, match="elements of 'X1' cannot be looked up") as raised:
        program_over_formats(program, {0: csr("float32"), 1: blocks}, {})
    assert raised.value.code == "einsum.format"
