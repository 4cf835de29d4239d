"""The intrinsics for products by matrix instructions: a record for each."""

from __future__ import annotations

import msgspec

from gossamer_cuda_mma_sp.instructions.matrix_instructions import matrix_instruction
from gossamer_cuda_mma_sp.instructions.warpgroup_instructions import (
    WarpgroupInstruction,
    warpgroup_instruction,
)
from gossamer_cuda_mma_sp.n_m.n_m_patterns import NMPattern
from gossamer_cuda_mma_sp.n_m.operand_dtypes import operand_dtype_named
from gossamer_cuda_mma_sp.target.gpu import Gpu
from gossamer_ir.core.dtypes import SCALARS
from gossamer_machine import ProductTile
from gossamer_machine.intrinsics.n_m_operands import n_m_operands

TILE = 32
"""The rows and the features of a tile of a warp: the largest square one whose sums, operands and metadata fit
the 255 registers of a thread, as ptxas 13.0 and 13.5 say. A warp loads 2.9 times fewer bytes for an
instruction than with the tile of one instruction (float16: 448 instead of 1280)."""
PAIRED_TILE = 16
"""The same for the pattern 4:8 in pairs, whose elements are bytes until an instruction reads them: with 32,
ptxas 13.5 keeps registers in local memory for sm_86 and sm_89."""
STAGED_TILE_ROWS = 128
"""The rows of a tile with operands in shared memory: two warpgroups compute it, of 64 rows each, or two rows
of warps."""
STAGED_TILE = 128
"""The features of a tile that eight warps compute."""
STAGED_WARP_PART = (64, 32)
"""The rows and the features of the tile of each of the warps: of all parts of a tile with as many sums, they
load the fewest bytes of shared memory for it. The sums are 64 registers of a lane."""
STAGES, WARPGROUP_STAGES = 3, 4
"""The tiles of operands in shared memory: one is multiplied, and two are filled. One more may still be read
by warpgroups. Three of float16 have 84 KiB, which a block has on all architectures from sm_80 on."""
WARPGROUP_TILES = (64, 128, 256)
"""The features of the tiles that two warpgroups compute: the more, the fewer bytes are moved for a product,
and the fewer blocks have work. None has spills (188 registers for 256), and two blocks with 128 fit a
multiprocessor."""
ROUNDED_TILES = WARPGROUP_TILES[:2]
"""Those in TF32, whose elements of 32 bits leave no shared memory for more."""


class ProductIntrinsic(msgspec.Struct, frozen=True):
    """An intrinsic that multiplies by an instruction: the dtype of its operands, the columns of A that an
    instruction multiplies, and whether A is an N:M matrix or consists of dense blocks.

    >>> ProductIntrinsic("int8", 64, is_sparse=True).name, ProductIntrinsic("float16", 16).sums
    ('mma_sp_product_int8', 'float32')
    """

    operands: str
    depth: int
    is_sparse: bool = False
    is_of_warpgroup: bool = False
    """True if four warps multiply together, with B in shared memory (`wgmma`)."""
    is_staged: bool = False
    """True if eight warps multiply tiles that are staged in shared memory."""
    features: int = STAGED_TILE
    """The features of a tile of warpgroups."""

    @property
    def name(self) -> str:
        """The name by which schedules and machines refer to it."""
        kind = "mma_sp_product" if self.is_sparse else "mma_block_product"
        if self.is_of_warpgroup:
            kind = "wgmma_sp_product"
        if self.is_staged:
            kind = "mma_sp_staged_product"
        size = "" if self.features == STAGED_TILE else f"_{self.features}"
        return f"{kind}_{self.operands}{size}"

    @property
    def stages(self) -> int:
        """The tiles of operands in shared memory, 0 if warps load them from global memory."""
        if self.is_of_warpgroup:
            return WARPGROUP_STAGES
        return STAGES if self.is_staged else 0

    @property
    def sums(self) -> str:
        """The dtype in which products are added."""
        return n_m_operands(self.operands).sums

    @property
    def stored_dtype(self) -> str:
        """The dtype of the elements in memory."""
        if self.operands in SCALARS:
            return self.operands
        # Instructions read fewer bits of an element than it has in memory.
        return operand_dtype_named(self.operands).stored_as

    @property
    def pattern(self) -> NMPattern:
        """The pattern of a sparse A."""
        return operand_dtype_named(self.operands).pattern

    @property
    def warpgroup_instruction(self) -> WarpgroupInstruction:
        """The instruction of one that four warps execute."""
        return warpgroup_instruction(self.features, self.operands, self.operands, self.sums)

    @property
    def tile(self) -> ProductTile:
        """The tile of the result that a block of threads computes by an N:M matrix."""
        if self.is_of_warpgroup:
            return ProductTile(STAGED_TILE_ROWS, self.features, is_of_warpgroups=True)
        if self.is_staged:
            return ProductTile(STAGED_TILE_ROWS, STAGED_TILE, warp_part=STAGED_WARP_PART)
        size = PAIRED_TILE if self.pattern.unit_columns > 1 else TILE
        return ProductTile(size, size)

    def is_on(self, gpu: Gpu) -> bool:
        """Return whether a GPU has the instruction, and it is not emulated there."""
        if self.is_of_warpgroup:
            return self.warpgroup_instruction.is_on(gpu)
        instruction = matrix_instruction(
            self.operands,
            self.operands,
            self.sums,
            depth=self.depth,
            is_sparse=self.is_sparse,
            gpu=gpu,
        )
        return instruction is not None


PRODUCT_INTRINSICS = (
    ProductIntrinsic("float16", 16),
    ProductIntrinsic("bfloat16", 16),
    ProductIntrinsic("int8", 32),
    ProductIntrinsic("uint8", 32),
    ProductIntrinsic("tfloat32", 8),
    ProductIntrinsic("float16", 32, is_sparse=True),
    ProductIntrinsic("bfloat16", 32, is_sparse=True),
    ProductIntrinsic("int8", 64, is_sparse=True),
    ProductIntrinsic("uint8", 64, is_sparse=True),
    ProductIntrinsic("tfloat32", 16, is_sparse=True),
    ProductIntrinsic("float8_e4m3", 64, is_sparse=True),
    ProductIntrinsic("float8_e5m2", 64, is_sparse=True),
    ProductIntrinsic("int4", 128, is_sparse=True),
    ProductIntrinsic("uint4", 128, is_sparse=True),
    ProductIntrinsic("float16", 32, is_sparse=True, is_staged=True),
    ProductIntrinsic("bfloat16", 32, is_sparse=True, is_staged=True),
    ProductIntrinsic("tfloat32", 16, is_sparse=True, is_staged=True),
    *(
        ProductIntrinsic(operands, depth, is_sparse=True, is_of_warpgroup=True, features=features)
        for operands, depth, tiles in (
            ("float16", 32, WARPGROUP_TILES),
            ("bfloat16", 32, WARPGROUP_TILES),
            ("int8", 64, WARPGROUP_TILES),
            ("uint8", 64, WARPGROUP_TILES),
            ("tfloat32", 16, ROUNDED_TILES),
            ("float8_e4m3", 64, WARPGROUP_TILES),
            ("float8_e5m2", 64, WARPGROUP_TILES),
        )
        for features in tiles
    ),
)


def n_m_tiles_of(gpu: Gpu) -> tuple[tuple[str, ProductTile], ...]:
    """Return the tiles of the intrinsics for N:M matrices whose instruction a GPU has, by their names."""
    names = {name for _, name in products_of(gpu, is_sparse=True)}
    return tuple(
        (intrinsic.name, intrinsic.tile)
        for intrinsic in PRODUCT_INTRINSICS
        if intrinsic.name in names
    )


def products_of(gpu: Gpu, *, is_sparse: bool) -> tuple[tuple[str, str], ...]:
    """Return the names of the intrinsics whose instruction a GPU has, by the dtype of the operands: if there
    are any of warpgroups, these only. There may be several with other tiles."""
    on_gpu = [
        intrinsic
        for intrinsic in PRODUCT_INTRINSICS
        if intrinsic.is_sparse == is_sparse and intrinsic.is_on(gpu)
    ]
    warpgroup_operands = {product.operands for product in on_gpu if product.is_of_warpgroup}
    return tuple(
        (product.operands, product.name)
        for product in on_gpu
        if product.is_of_warpgroup or product.operands not in warpgroup_operands
    )
