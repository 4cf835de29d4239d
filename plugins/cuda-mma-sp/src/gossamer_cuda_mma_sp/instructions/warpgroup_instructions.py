"""The table of `wgmma.mma_async.sp`: the threads of four warps multiply a sparse matrix of 64 rows.

Only GPUs with warpgroups have these instructions, and no later ones do. A is in registers or in shared
memory, B in shared memory, and the accumulator and the metadata are in registers.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from gossamer_cuda_mma_sp.instructions.matrix_instructions import PTX_TYPES, saturations
from gossamer_cuda_mma_sp.instructions.sparse_instructions import (
    MMA_COLUMNS,
    MMA_ROWS,
    SparseInstruction,
)
from gossamer_cuda_mma_sp.n_m.operand_dtypes import OperandDType, operand_dtype_named
from gossamer_cuda_mma_sp.target.architectures import PTX_VERSIONS, SPARSE_PTX
from gossamer_cuda_mma_sp.target.gpu import Gpu
from gossamer_ir.core.limits import WARP_LANES
from gossamer_ir.errors import ArgumentError
from gossamer_support.typed_calls import typed

WARPS = 4
"""The warps of a warpgroup, which execute an instruction together."""
WARPGROUP_LANES = WARPS * WARP_LANES
WARPGROUP_ROWS = WARPS * MMA_ROWS
"""The rows of A and of the result: 16 of each warp."""
MAX_COLUMNS = 256
"""The most columns of B and of the result."""
A_REGISTERS = 4
"""The registers of A in a lane."""
_A_BYTES = 32
"""The bytes of a row of A: as many as eight registers of a quad."""


class WarpgroupInstruction(msgspec.Struct, frozen=True):
    """An instruction `wgmma.mma_async.sp` for dtypes of A and B, an accumulator, and columns of B.

    >>> instruction = WarpgroupInstruction(64, "float16", "float16", "float32")
    >>> instruction.ptx_name
    'wgmma.mma_async.sp.sync.aligned.m64n64k32.f32.f16.f16'
    >>> instruction.selectors, instruction.sum_registers
    ((0, 1), 32)
    """

    columns: int
    a: str
    b: str
    accumulator: str
    saturates: bool = False
    """True if sums of int32 stay at the least or the greatest number (`.satfinite`); else they wrap."""

    @property
    def element(self) -> OperandDType:
        """The record of the dtype of A. That of B has the same pattern and number of bits."""
        return operand_dtype_named(self.a)

    @property
    def warps(self) -> int:
        """The warps that execute it together."""
        return WARPS

    @property
    def bits(self) -> int:
        """The bits of an element of A and B."""
        return self.element.bits

    @property
    def depth(self) -> int:
        """The columns of A, of which half are stored, and rows of B."""
        return 2 * self.stored_depth

    @property
    def stored_depth(self) -> int:
        """The columns of A that are stored."""
        return _A_BYTES * 8 // self.bits

    @property
    def register_elements(self) -> int:
        """The elements in a register of A."""
        return self.element.register_elements

    @property
    def a_registers(self) -> int:
        """The registers of A in a lane."""
        return A_REGISTERS

    @property
    def is_sparse(self) -> bool:
        """True: half of A is stored, with metadata."""
        return True

    @property
    def selectors(self) -> tuple[int, ...]:
        """The legal sparsity selectors, as for `mma.sp` of the same depth."""
        return (0, 1) if self.bits >= 16 else (0,)

    @property
    def can_transpose(self) -> bool:
        """True if the rows of A and the columns of B may be contiguous in shared memory, too."""
        return self.bits == 16

    @property
    def sum_registers(self) -> int:
        """The registers of the accumulator in a lane."""
        return self.columns // (4 if self.accumulator == "float16" else 2)

    @property
    def ptx_name(self) -> str:
        """The name of the instruction in PTX, with its suffixes."""
        d, a, b = (PTX_TYPES[name] for name in (self.accumulator, self.a, self.b))
        shape = f"m{WARPGROUP_ROWS}n{self.columns}k{self.depth}"
        shape += ".satfinite" if self.saturates else ""
        return f"wgmma.mma_async.sp.sync.aligned.{shape}.{d}.{a}.{b}"

    @property
    def warp_instruction(self) -> SparseInstruction:
        """The instruction `mma.sp` whose registers those of each warp are, but for those of B."""
        operands = tuple(dict.fromkeys((self.a, self.b)))
        return SparseInstruction(self.depth, operands, (self.accumulator,), self.selectors, 80)

    def immediates(
        self, *, a_is_shared: bool, a_is_by_k: bool = True, b_is_by_k: bool = True
    ) -> str:
        """Return the last operands: signs of A and B unless they are integers, and for elements of 16 bits
        whether those along K are contiguous in shared memory, of A if it is there, and of B.

        >>> instruction = WarpgroupInstruction(8, "float16", "float16", "float32")
        >>> instruction.immediates(a_is_shared=False, b_is_by_k=False)
        '1, 1, 1'
        """
        signs = () if self.accumulator == "int32" else (1, 1)
        ways = (
            ((a_is_by_k, b_is_by_k) if a_is_shared else (b_is_by_k,)) if self.can_transpose else ()
        )
        return ", ".join(map(str, (*signs, *(int(not is_by_k) for is_by_k in ways))))

    def is_on(self, gpu: Gpu) -> bool:
        """Return whether a GPU has the instruction."""
        has_version = PTX_VERSIONS.index(gpu.ptx) >= PTX_VERSIONS.index(SPARSE_PTX)
        return has_version and gpu.architecture.has_warpgroups


_FLOATS = ("float16", "float32")
_DTYPES = (
    (("float16",), _FLOATS),
    (("bfloat16",), ("float32",)),
    (("tfloat32",), ("float32",)),
    (("float8_e4m3", "float8_e5m2"), _FLOATS),
    (("int8", "uint8"), ("int32",)),
)
"""The dtypes of A and B, any two of a row, and those of the accumulator."""


def _all() -> Iterator[WarpgroupInstruction]:
    for operands, accumulators in _DTYPES:
        for a in operands:
            for b in operands:
                for sums in accumulators:
                    for columns in range(MMA_COLUMNS, MAX_COLUMNS + 1, MMA_COLUMNS):
                        if sums != "int32" or _has_integers(columns):
                            for saturates in saturations(sums):
                                yield WarpgroupInstruction(columns, a, b, sums, saturates)


def _has_integers(columns: int) -> bool:
    """Return whether the instructions for integers have so many columns."""
    return columns % 16 == 0 or columns in (8, 24)


WARPGROUP_INSTRUCTIONS = tuple(_all())
"""All instructions, from the tables of the PTX ISA ("wgmma.mma_async.sp")."""


@typed
def warpgroup_instruction(columns: int, a: str, b: str, accumulator: str) -> WarpgroupInstruction:
    """Return the instruction for B with so many columns, whose sums wrap; raise `ArgumentError` (`n_m.dtype`,
    `n_m.instruction`) if there is none.

    >>> warpgroup_instruction(24, "int8", "uint8", "int32").depth
    64
    >>> warpgroup_instruction(40, "int8", "int8", "int32")
    Traceback (most recent call last):
    ...
    gossamer_support.errors.ArgumentError: There is no 'wgmma.mma_async.sp' of int8 and int8 into int32 with \
40 columns; expected 8, 16, 24, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256. \
[n_m.instruction]
    """
    for name in (a, b):
        operand_dtype_named(name)
    dtypes = (a, b, accumulator)
    candidates = [
        instruction
        for instruction in WARPGROUP_INSTRUCTIONS
        if (instruction.a, instruction.b, instruction.accumulator) == dtypes
        and not instruction.saturates
    ]
    for instruction in candidates:
        if instruction.columns == columns:
            return instruction
    expected = ", ".join(str(instruction.columns) for instruction in candidates) or "other dtypes"
    raise ArgumentError(
        "n_m.instruction",
        f"There is no 'wgmma.mma_async.sp' of {a} and {b} into {accumulator} with {columns} columns; "
        f"expected {expected}.",
    )
