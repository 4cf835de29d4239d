"""The matrix instructions of a GPU, dense (`mma`) and sparse (`mma.sp::ordered_metadata`), for LLVM."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from gossamer_cuda_mma_sp.instructions.sparse_instructions import SPARSE_INSTRUCTIONS
from gossamer_cuda_mma_sp.n_m.operand_dtypes import operand_dtype_named
from gossamer_cuda_mma_sp.target.architectures import PTX_VERSIONS, SPARSE_PTX
from gossamer_cuda_mma_sp.target.gpu import Gpu

PTX_TYPES = {
    "float16": "f16", "bfloat16": "bf16", "tfloat32": "tf32", "int8": "s8", "uint8": "u8", "int4": "s4",
    "uint4": "u4", "float8_e4m3": "e4m3", "float8_e5m2": "e5m2", "float32": "f32", "int32": "s32",
}  # fmt: skip
"""The names of PTX of the dtypes of operands and accumulators."""


class DenseShape(msgspec.Struct, frozen=True):
    """The shapes m16n8k of `mma` for some dtypes of A and B, with what they need."""

    depths: tuple[int, ...]
    operands: tuple[str, ...]
    accumulators: tuple[str, ...]
    architecture: int = 80
    ptx: str = "7.0"


DENSE_SHAPES = (
    DenseShape((16, 8), ("float16",), ("float16", "float32")),
    DenseShape((16, 8), ("bfloat16",), ("float32",)),
    DenseShape((8, 4), ("tfloat32",), ("float32",)),
    DenseShape((32, 16), ("int8", "uint8"), ("int32",)),
    DenseShape((64, 32), ("int4", "uint4"), ("int32",)),
    DenseShape((32,), ("float8_e4m3", "float8_e5m2"), ("float32",), 89, "8.5"),
)
"""All shapes with 16 rows and 8 columns, from the tables of the PTX ISA ("mma"), largest depth first."""


class MatrixInstruction(msgspec.Struct, frozen=True):
    """An instruction that adds a product to an accumulator: A has 16 rows and `depth` columns, of which a
    sparse one stores half, and B has 8 columns.

    >>> instruction = MatrixInstruction(32, "float16", "float16", "float32", selectors=(0, 1))
    >>> instruction.intrinsic
    'llvm.nvvm.mma.sp.ordered.metadata.m16n8k32.row.col.f32.f32'
    >>> instruction.a_registers, instruction.b_registers, instruction.operand_type
    (4, 4, '<2 x half>')
    """

    depth: int
    a: str
    b: str
    accumulator: str
    selectors: tuple[int, ...] = ()
    """The legal sparsity selectors; none for a dense instruction."""
    architecture: int = 80
    ptx: str = SPARSE_PTX
    emulated_on: tuple[int, ...] = ()
    saturates: bool = False
    """True if sums of int32 stay at the least or the greatest number (`.satfinite`); else they wrap."""

    @property
    def is_sparse(self) -> bool:
        """True if half of A is stored, with metadata."""
        return bool(self.selectors)

    @property
    def warps(self) -> int:
        """The warps that execute it together."""
        return 1

    @property
    def bits(self) -> int:
        """The bits of an element of A and B."""
        return operand_dtype_named(self.a).bits

    @property
    def register_elements(self) -> int:
        """The elements in a register of A or B."""
        return 32 // self.bits

    @property
    def stored_depth(self) -> int:
        """The columns of A that are stored."""
        return self.depth // 2 if self.is_sparse else self.depth

    @property
    def a_registers(self) -> int:
        """The registers of A in a lane."""
        return self.stored_depth // 2 // self.register_elements

    @property
    def b_registers(self) -> int:
        """The registers of B in a lane."""
        return self.depth // 4 // self.register_elements

    @property
    def operand_type(self) -> str:
        """The type of LLVM of a register of A or B."""
        return "<2 x half>" if self.a == "float16" else "i32"

    @property
    def intrinsic(self) -> str:
        """The name of the intrinsic of LLVM."""
        kind = "mma.sp.ordered.metadata" if self.is_sparse else "mma"
        limited = ".satfinite" if self.saturates else ""
        return f"llvm.nvvm.{kind}.m16n8k{self.depth}.row.col{limited}.{self._types}"

    @property
    def _types(self) -> str:
        a, b, sums = (PTX_TYPES[name] for name in (self.a, self.b, self.accumulator))
        if self.a == "float16":
            return f"{sums}.{sums}"
        if a.startswith("e"):
            return f"{sums}.{a}.{b}.{sums}"
        return a if a == b else f"{a}.{b}"

    def is_on(self, gpu: Gpu) -> bool:
        """Return whether a GPU has the instruction, also if ptxas emulates it there."""
        versions = PTX_VERSIONS.index(gpu.ptx) >= PTX_VERSIONS.index(self.ptx)
        return versions and gpu.architecture.number >= self.architecture

    def is_emulated_on(self, gpu: Gpu) -> bool:
        """Return whether ptxas makes others of the instruction on a GPU."""
        return gpu.architecture.number // 10 in {number // 10 for number in self.emulated_on}


def _all() -> Iterator[MatrixInstruction]:
    for shape in DENSE_SHAPES:
        for depth in shape.depths:
            for a, b, sums in _dtypes(shape.operands, shape.accumulators):
                for saturates in saturations(sums):
                    yield MatrixInstruction(
                        depth,
                        a,
                        b,
                        sums,
                        architecture=shape.architecture,
                        ptx=shape.ptx,
                        saturates=saturates,
                    )
    for sparse in SPARSE_INSTRUCTIONS:
        for a, b, sums in _dtypes(sparse.operands, sparse.accumulators):
            for saturates in saturations(sums):
                yield MatrixInstruction(
                    sparse.depth,
                    a,
                    b,
                    sums,
                    sparse.selectors,
                    architecture=sparse.architecture,
                    emulated_on=sparse.emulated_on,
                    saturates=saturates,
                )


def saturations(accumulator: str) -> tuple[bool, ...]:
    """Return whether the sums of instructions with an accumulator saturate: those of integers may.

    >>> saturations("float32"), saturations("int32")
    ((False,), (False, True))
    """
    return (False, True) if accumulator == "int32" else (False,)


def _dtypes(
    operands: tuple[str, ...], accumulators: tuple[str, ...]
) -> Iterator[tuple[str, str, str]]:
    for a in operands:
        for b in operands:
            for sums in accumulators:
                yield a, b, sums


MATRIX_INSTRUCTIONS = tuple(_all())
"""All instructions; of one kind and dtypes, any depth."""


def matrix_instruction(
    a: str, b: str, accumulator: str, *, depth: int, is_sparse: bool, gpu: Gpu
) -> MatrixInstruction | None:
    """Return the instruction of the largest depth that divides the depth of a tile, whose sums wrap; None if
    a GPU has none."""
    fitting = [
        instruction
        for instruction in MATRIX_INSTRUCTIONS
        if (instruction.a, instruction.b, instruction.accumulator, instruction.is_sparse)
        == (a, b, accumulator, is_sparse)
        and depth % instruction.depth == 0
        and not instruction.saturates
        and instruction.is_on(gpu)
        and not instruction.is_emulated_on(gpu)
    ]
    return max(fitting, key=lambda instruction: instruction.depth, default=None)
