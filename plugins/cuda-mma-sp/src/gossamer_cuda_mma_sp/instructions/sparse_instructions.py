"""The table of `mma.sp` instructions, and the checks of what an instruction is used with."""

from __future__ import annotations

import msgspec

from gossamer_cuda_mma_sp.n_m.operand_dtypes import OperandDType, operand_dtype_named
from gossamer_ir.errors import ArgumentError
from gossamer_support.typed_calls import typed

MMA_ROWS = 16
"""The rows of A and of the result."""
MMA_COLUMNS = 8
"""The columns of B and of the result."""


class SparseInstruction(msgspec.Struct, frozen=True):
    """An instruction `mma.sp::ordered_metadata` of a shape, for some dtypes of A and B.

    >>> sparse_instruction("m16n8k32", "float16").selectors
    (0, 1)
    """

    depth: int
    """The columns of A, of which half are stored, and rows of B: k in the name of the shape."""
    operands: tuple[str, ...]
    """The dtypes of A and B; any two of them may be combined."""
    accumulators: tuple[str, ...]
    """The dtypes of the accumulator and the result."""
    selectors: tuple[int, ...]
    """The legal values of the sparsity selector, which names the lanes that supply metadata."""
    architecture: int
    """The lowest architecture that has the instruction: 80 for sm_80."""
    emulated_on: tuple[int, ...] = ()
    """The architectures among 80, 89, 90, 100 and 120 on which ptxas 13.0 emulates it by others."""

    @property
    def shape(self) -> str:
        """The name of the shape, as in `m16n8k32`."""
        return f"m{MMA_ROWS}n{MMA_COLUMNS}k{self.depth}"

    @property
    def element(self) -> OperandDType:
        """The record of a dtype of A and B. All of them have the same pattern and number of bits."""
        return operand_dtype_named(self.operands[0])

    @property
    def groups(self) -> int:
        """The groups in a row of a tile of A."""
        return self.depth // self.element.pattern.group

    @property
    def operand_registers(self) -> int:
        """The registers of A in a lane, and those of B: half of A has as many elements as B."""
        return self.depth // 4 // self.element.register_elements


SPARSE_INSTRUCTIONS = (
    SparseInstruction(16, ("float16",), ("float16", "float32"), (0, 1, 2, 3), 80),
    SparseInstruction(32, ("float16",), ("float16", "float32"), (0, 1), 80),
    SparseInstruction(16, ("bfloat16",), ("float32",), (0, 1, 2, 3), 80),
    SparseInstruction(32, ("bfloat16",), ("float32",), (0, 1), 80),
    SparseInstruction(8, ("tfloat32",), ("float32",), (0, 1, 2, 3), 80),
    SparseInstruction(16, ("tfloat32",), ("float32",), (0, 1), 80),
    SparseInstruction(32, ("int8", "uint8"), ("int32",), (0, 1), 80),
    SparseInstruction(64, ("int8", "uint8"), ("int32",), (0,), 80),
    SparseInstruction(64, ("float8_e4m3", "float8_e5m2"), ("float32",), (0,), 89, (90, 100)),
    SparseInstruction(64, ("int4", "uint4"), ("int32",), (0, 1), 80, (90, 100, 120)),
    SparseInstruction(128, ("int4", "uint4"), ("int32",), (0,), 80, (90, 100, 120)),
)
"""All instructions, from the tables of the PTX ISA ("mma.sp"). ptxas 13.0 accepts exactly the shapes and
dtypes of the table, and one selector too many: 2 and 3 for m16n8k32 with float16 and an accumulator of
float32, whose behavior is undefined."""


@typed
def sparse_instruction(shape: str, dtype: str) -> SparseInstruction:
    """Return the instruction of a shape, such as "m16n8k32", for a dtype of A.

    Raises `ArgumentError`: `n_m.dtype`, `n_m.instruction` (the message names the shapes that exist
    for the dtype).

    >>> sparse_instruction("m16n8k64", "int8").operand_registers
    4
    """
    operand_dtype_named(dtype)
    candidates = [
        instruction for instruction in SPARSE_INSTRUCTIONS if dtype in instruction.operands
    ]
    for instruction in candidates:
        if instruction.shape == shape:
            return instruction
    raise ArgumentError(
        "n_m.instruction",
        f"There is no sparse matrix instruction of the shape '{shape}' for {dtype}; expected "
        f"{' or '.join(instruction.shape for instruction in candidates)}.",
    )


@typed
def required_instruction(
    shape: str, a: str, b: str, accumulator: str, *, selector: int = 0, architecture: int
) -> SparseInstruction:
    """Return the instruction of a shape for operands of dtypes `a` and `b`, if it is legal as it is used.

    `selector` is the sparsity selector, `architecture` the number of the architecture (80 for sm_80).

    Raises `ArgumentError`: `n_m.dtype`, `n_m.instruction` (no such shape, or dtypes that it does
    not combine), `n_m.selector`, `n_m.architecture` (a later one is needed). The rules are those of
    the PTX ISA; ptxas accepts some selectors whose behavior is undefined.

    >>> required_instruction("m16n8k32", "int8", "uint8", "int32", selector=1, architecture=80).shape
    'm16n8k32'
    >>> required_instruction("m16n8k32", "float16", "float16", "float32", selector=2, architecture=90)
    Traceback (most recent call last):
    ...
    gossamer_support.errors.ArgumentError: The sparsity selector of m16n8k32 for float16 is 2; expected 0 or \
1. [n_m.selector]
    """
    instruction = sparse_instruction(shape, a)
    operand_dtype_named(b)
    if b not in instruction.operands or accumulator not in instruction.accumulators:
        raise ArgumentError(
            "n_m.instruction",
            f"{shape} does not multiply {a} by {b} into {accumulator}; expected "
            f"{' or '.join(instruction.operands)} into {' or '.join(instruction.accumulators)}.",
        )
    require_selector(instruction, selector)
    if architecture < instruction.architecture:
        raise ArgumentError(
            "n_m.architecture",
            f"sm_{architecture} does not have {shape} for {a}; expected sm_{instruction.architecture} or "
            "later.",
        )
    return instruction


def require_selector(instruction: SparseInstruction, selector: int) -> None:
    """Raise an `ArgumentError` (`n_m.selector`) unless an instruction has a sparsity selector."""
    if selector not in instruction.selectors:
        raise ArgumentError(
            "n_m.selector",
            f"The sparsity selector of {instruction.shape} for {instruction.operands[0]} is {selector}; "
            f"expected {' or '.join(map(str, instruction.selectors))}.",
        )
