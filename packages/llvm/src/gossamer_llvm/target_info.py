"""The properties of a target that the emitter needs."""

from __future__ import annotations

import msgspec

from gossamer_ir.core.dtypes import VSCALE_UNIT_BITS
from gossamer_ir.core.math_functions import instructions_with

LANE_COUNTS = (2, 4, 8, 16, 32, 64)
"""The lane counts, or multiples of vscale, that are passed to LLVM; it aborts the process for some others."""

INSERTED_LANES = 8
"""The lanes up to which scalar loads are faster than a gather on most CPUs, and scalar stores than a scatter
(measured on SpMV: 1.4 times faster with 8)."""

CODE_ALIGNMENT = 64
"""Bytes to which functions and loops are aligned: then how well short loops are predicted does not depend on
where code happens to be (measured on Emerald Rapids in products with rows of 4 elements: up to 1.3 times as
fast as at multiples of 16, up to 1.2 times as at those of 32)."""


class TargetInfo(msgspec.Struct, frozen=True):
    """The properties of a target that the emitter needs; its own instructions are in a `TargetLowering`.

    >>> TargetInfo("aarch64-unknown-linux-gnu", is_scalable=True).functions >= {"sqrt"}
    True
    """

    triple: str
    data_layout: str = ""
    functions: frozenset[str] = instructions_with(())
    """The math functions that are instructions; calls of a library are never emitted."""
    is_scalable: bool = False
    """True if there are vectors with a multiple of vscale lanes."""
    vscale_bits: int = VSCALE_UNIT_BITS
    """The bits of a register for each unit of LLVM's vscale; those of the language, or a part of them."""
    has_lane_masks: bool = False
    """True if an instruction computes the mask of the lanes below a bound, and sets flags by the first."""
    has_costly_masks: bool = False
    """True if instructions of their own compute masks, and keep lanes: on x86-64 without AVX-512 (measured on
    Zen 3). Masks of NEON are in vector registers, too, but were not measured."""
    has_lane_products: bool = True
    """True if LLVM multiplies the lanes of scalable vectors."""
    has_half_conversions: bool = False
    """True if instructions convert float16 to float32 and back."""
    inserted_lanes: int = INSERTED_LANES
    """The number of lanes up to which a gather becomes scalar loads."""
    has_displaced_indices: bool = True
    """True if the address of an instruction may be the sum of a base, an index and a constant."""
    loop_alignment: int = CODE_ALIGNMENT
    """The bytes of which loops begin at a multiple; 0 leaves that to LLVM."""
    attributes: tuple[str, ...] = ()
    """The attributes of each function."""
    is_device: bool = False
    """True if functions are kernels that threads of a device run, without a heap and a C library."""
