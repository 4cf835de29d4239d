"""Products of warpgroups in LLVM IR: the descriptor, the alignment of shared memory, and the fences."""

import re

from msgspec.structs import replace

from gossamer_ir.core.build import index, index_var
from gossamer_ir.nodes import Allocate, Barrier, Buffer, Cast, For, Function, Load, Module, Store
from gossamer_llvm import WarpgroupProduct, WarpgroupWait, emit_llvm_ir, nvptx_lowering, warp_loop
from gossamer_llvm.target_info import TargetInfo

PRODUCT = WarpgroupProduct(
    instruction="wgmma.x",
    sums=4,
    operand_bits=16,
    descriptor=(2 << 62) | (32 << 32),
    immediates="1, 1, 1",
)


def text_of(depth_tiles, product=PRODUCT, *, waits=False):
    """The LLVM IR of a kernel with a product along so many tiles of B."""
    lane = index_var("lane")
    sums = Buffer("S", (index(4),), "float32", scope="local")
    scope = "local" if product.a_descriptor is None else "shared"
    a = Buffer("X", (index(8 * depth_tiles),), "float16", scope=scope)
    metadata = Buffer("M", (index(depth_tiles),), "uint32", scope="local")
    b = Buffer("Y", (index(64), index(32)), "float16", scope="shared")
    zero = (index(0),)
    stores = [Store("S", zero, Load("S", zero, "float32"))]
    for tile in range(depth_tiles):
        for buffer, first in ((a, 8 * tile), (metadata, tile)):
            at = (index(first),)
            stores.append(Store(buffer.name, at, Load(buffer.name, at, buffer.dtype)))
        element = Load("Y", (index(32 * tile), index(0)), "float16")
        stores.append(Store("S", zero, Cast("float32", element)))
    stores.append(Store("S", zero, Cast("float32", Load("Y", (lane, index(0)), "float16"))))
    wait = [warp_loop("w", WarpgroupWait(sums=4), tuple(stores[:1]))] if waits else []
    body = (
        *map(Allocate, (sums, a, metadata, b)),
        Barrier(),
        For(
            lane.name,
            index(0),
            index(128),
            (warp_loop("p", replace(product, steps=depth_tiles), tuple(stores)), *wait),
            kind="thread_binding",
            thread="threadIdx.x",
        ),
    )
    module = Module("flat", (Function("f", (), body),), "f")
    target_info = TargetInfo(triple="nvptx64-nvidia-cuda", is_device=True)
    return emit_llvm_ir(
        module, target_info=target_info, lowering=nvptx_lowering(has_async_copies=True)
    )


def test_descriptors_have_the_addresses_of_tiles():
    text = text_of(2)
    # The mode of swizzling is in the highest bits: a constant of 64 bits is signed.
    assert text.count(f", {PRODUCT.descriptor - (1 << 64)}") == 2
    assert text.count("wgmma.x {") == 2


def test_a_in_shared_memory_has_a_descriptor_of_its_own():
    text = text_of(2, replace(PRODUCT, a_descriptor=(1 << 62) | (64 << 32)))
    assert text.count(f", {(1 << 62) | (64 << 32)}") == 2
    assert re.findall(r"wgmma\.x \{\$0, \$1, \$2, \$3\}, (\$\d+),", text) == ["$8", "$11"]


def test_a_wait_has_the_sums_of_pending_products():
    text = text_of(1, replace(PRODUCT, pending_groups=1), waits=True)
    assert text.index("wait_group.sync.aligned 1") < text.index("wait_group.sync.aligned 0")
    assert '0;", "=&f,=&f,=&f,=&f,0,1,2,3,~{memory}"' in text


def test_tiles_begin_where_chunks_change_places():
    assert "align 1024" in text_of(1)


def test_stores_are_fenced_before_a_barrier():
    text = text_of(1)
    assert text.index("fence.proxy.async") < text.index("call void @llvm.nvvm.barrier")


def test_sums_are_in_registers_of_their_own():
    """Instructions write sums before the last one reads A, so that both may not be in the same registers."""
    assert '"=&f,=&f,=&f,=&f,0,1,2,3,' in text_of(1)
