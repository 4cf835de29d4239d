"""The kernel ABI (`gossamer_ir.interchange.kernel_abi`) in LLVM, and the properties of a target."""

from __future__ import annotations

import msgspec

from gossamer_ir.core.dtypes import VSCALE_UNIT_BITS
from gossamer_ir.core.math_functions import instructions_with
from gossamer_ir.interchange.kernel_abi import WORKSPACE_FIELDS, workspace_field

WORKSPACE = f"{{ {', '.join('ptr' if field.is_pointer else 'i64' for field in WORKSPACE_FIELDS)} }}"
"""`struct gossamer_workspace`, as a type of LLVM."""


def workspace_address(workspace: str, field: str) -> str:
    """Return the instruction that computes the address of a field of a workspace.

    >>> workspace_address("%w", "failed_buffer")
    'getelementptr inbounds { i64, ptr, i64, ptr }, ptr %w, i32 0, i32 2'
    """
    return (
        f"getelementptr inbounds {WORKSPACE}, ptr {workspace}, i32 0, i32 {workspace_field(field)}"
    )


LANE_COUNTS = (2, 4, 8, 16, 32, 64)
"""The lane counts, or multiples of vscale, that are passed to LLVM; it aborts the process for some others."""


INSERTED_LANES = 8
"""The lanes up to which scalar loads are faster than a gather on most CPUs, and scalar stores than a scatter
(measured on SpMV: 1.4 times faster with 8)."""


CODE_ALIGNMENT = 64
"""Bytes to which functions and loops are aligned: then how well short loops are predicted does not depend on
where code happens to be (measured on Emerald Rapids in products with rows of 4 elements: up to 1.3 times as
fast as at multiples of 16, up to 1.2 times as at those of 32)."""


class Abi(msgspec.Struct, frozen=True):
    """The properties of a target that the emitter needs.

    `functions` are the math functions that are instructions there; calls of a library are never emitted.
    `scalable`: the target has vectors with a multiple of vscale lanes. `vscale_bits`: the bits of a register
    for each unit of LLVM's vscale; those of the language, or a part of them. `lane_masks`: an instruction
    computes the mask of the lanes below a bound, and tells whether there is one. `lane_products`: LLVM
    multiplies the lanes of scalable vectors. `half_conversions`: it has instructions that convert float16 to
    float32 and back. A gather of at most `inserted_lanes` lanes becomes scalar loads. `permuted_bytes`: the
    size of a vector register whose elements of 32 and 64 bits an instruction of AVX-512 permutes by indices
    in another one; 0 if there is none. `displaced_indices`: an address of an instruction may be the sum of a
    base, an index and a constant. Loops begin at a multiple of `loop_alignment` bytes; 0 leaves that to LLVM.
    `is_device`: functions are kernels that threads of a device run, without a heap and a C library.
    `attributes` are attached to each function, but `streaming_attributes` to those that run in streaming
    mode, where there are `matrix_registers` (tiles of Arm SME, for elements of 32 bits).

    >>> Abi("aarch64-unknown-linux-gnu", scalable=True).functions >= {"sqrt"}
    True
    """

    triple: str
    data_layout: str = ""
    functions: frozenset[str] = instructions_with(())
    scalable: bool = False
    vscale_bits: int = VSCALE_UNIT_BITS
    lane_masks: bool = False
    lane_products: bool = True
    half_conversions: bool = False
    inserted_lanes: int = INSERTED_LANES
    permuted_bytes: int = 0
    displaced_indices: bool = True
    loop_alignment: int = CODE_ALIGNMENT
    attributes: tuple[str, ...] = ()
    matrix_registers: int = 0
    is_device: bool = False
    streaming_attributes: tuple[str, ...] = ()
