"""The record of a machine that backends give to rules for schedules and to models of costs.

These derive thresholds from it, by factors that stand beside their measurements. The rules of gossamer are
for CPUs and for machines that run grids of threads (`Machine.grid`); a plugin for another kind of machine
registers its own (`gossamer_schedules`), which are tried first.
"""

from __future__ import annotations

from typing import cast

import msgspec

from gossamer_ir.core.dtypes import VSCALE_UNIT_BITS, DType
from gossamer_ir.interchange.records import Target
from gossamer_machine.cpu_options import CPU_OPTIONS, NATIVE_VSCALE, NO_VSCALE, GatherSpeed
from gossamer_support.typed_calls import typed

IN_FLIGHT = 8
"""Independent multiply-adds that hide their latency: four cycles, two units of a CPU."""


class Grid(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Limits of a machine with grids of threads: threads of a warp and at most of a block, bytes of static
    shared memory of a block, and multiprocessors, which run blocks.

    >>> Grid(warp=32, block_threads=1024, shared_memory=49152, multiprocessors=108).warp
    32
    """

    warp: int
    block_threads: int
    shared_memory: int
    multiprocessors: int


class ProductTile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The rows and the features of the result that a block of threads computes by matrix instructions, and
    whether these are instructions of warpgroups, which multiply twice as fast. `warp_part` are the rows and
    the features of each warp, if it loads its operands from the shared memory of the block.

    >>> ProductTile(32, 32).is_of_warpgroups
    False
    """

    rows: int
    features: int
    is_of_warpgroups: bool = False
    warp_part: tuple[int, int] | None = None


class Machine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The machine that runs a program: the default is a server with vectors of 512 bits.

    >>> Machine(min_vector_bits=256).lanes("float64"), Machine(vector_registers=16).accumulators
    (4, 8)
    """

    min_vector_bits: int = 512
    """The least number of bits of a vector register. If vectors are scalable, the code works for any
    multiple; else all have as many."""
    vector_registers: int = 32
    is_scalable: bool = False
    private_cache: int = 1 << 20
    """The bytes of the second level."""
    shared_cache: int = 32 << 20
    """The bytes of the last level."""
    gathers: GatherSpeed = "moderate"
    cores: int = 32
    """The processors on which a kernel runs by default."""
    fixed_vscale: int | None = 512 // VSCALE_UNIT_BITS
    """The constant that replaces vscale if vectors are not scalable; None if scalable vectors
    are an error."""
    block_products: tuple[tuple[str, str], ...] = ()
    """Intrinsics that add products of blocks and a dense matrix in matrix registers, by the dtype of the
    operands; sums are float32."""
    min_product_bits: int = 512
    """The least bits of the vectors of matrix registers."""
    n_m_products: tuple[tuple[str, str], ...] = ()
    """Intrinsics that add the products of an N:M matrix and a dense one, by the dtype of the operands: those
    of one dtype have different tiles."""
    n_m_tiles: tuple[tuple[str, ProductTile], ...] = ()
    """The tiles of these intrinsics on machines that run grids of threads, by their names."""
    grid: Grid | None = None
    """The properties of a machine that runs grids of threads; None for CPUs."""

    def lanes(self, dtype: str, *, holding: int | None = None) -> int:
        """Return the number of lanes of a vector register, the least number if vectors are scalable; a bool
        takes a byte of memory.

        If half of the lanes or fewer hold `holding` elements, the vector is as narrow as that allows.

        >>> Machine().lanes("float32", holding=100), Machine().lanes("float32", holding=5)
        (16, 8)
        """
        lanes = self.min_vector_bits // max(8, DType.parse(dtype).bits)
        while holding is not None and lanes // 2 >= max(1, holding):
            lanes //= 2
        return lanes

    def native_lanes(self, dtype: str) -> int | str:
        """Return the lanes of a vector register as a factor of `split`: a multiple of vscale if vectors are
        scalable.

        >>> Machine().native_lanes("float32"), Machine(is_scalable=True).native_lanes("float64")
        (16, '2 * T.vscale()')
        """
        return f"{self.unit_lanes(dtype)} * T.vscale()" if self.is_scalable else self.lanes(dtype)

    def unit_lanes(self, dtype: str) -> int:
        """Return the number of lanes of a scalable vector register for each unit of vscale.

        >>> Machine(is_scalable=True).unit_lanes("float32")
        4
        """
        return VSCALE_UNIT_BITS // max(8, DType.parse(dtype).bits)

    @property
    def accumulators(self) -> int:
        """The number of accumulators: half of the vector registers."""
        return self.vector_registers // 2

    @property
    def has_mask_registers(self) -> bool:
        """True if masks are in registers of their own, and cost nothing beside the instruction that they
        mask: with AVX-512 and scalable vectors, not with NEON."""
        return self.is_scalable or self.min_vector_bits >= 512

    @property
    def has_masked_loads(self) -> bool:
        """True if there are masked loads and stores. AVX2 has them, with masks in vector registers. In
        narrower vectors each lane is a branch.

        >>> narrow = Machine(min_vector_bits=256)
        >>> narrow.has_masked_loads, narrow.has_mask_registers
        (True, False)
        """
        return self.is_scalable or self.min_vector_bits >= 256


@typed
def machine_of(target: Target) -> Machine:
    """Return the machine with 32 vectors of a fixed length that a target describes by its `CPU_OPTIONS`; an
    option that is not given has its default.

    >>> machine = machine_of(Target.parse("generic-cpu:vector_bits=256,gathers=slow"))
    >>> machine.lanes("float32"), machine.gathers, machine.fixed_vscale
    (8, 'slow', 2)
    """
    values = {option.name: option.value_of(target) for option in CPU_OPTIONS}
    bits, vscale = int(values["vector_bits"]), values["vscale"]
    if vscale == NATIVE_VSCALE:
        vscale = bits // VSCALE_UNIT_BITS
    return Machine(
        min_vector_bits=bits,
        private_cache=int(values["l2"]),
        shared_cache=int(values["l3"]),
        gathers=cast(GatherSpeed, values["gathers"]),
        cores=int(values["cores"]),
        fixed_vscale=None if vscale == NO_VSCALE else int(vscale),
    )
