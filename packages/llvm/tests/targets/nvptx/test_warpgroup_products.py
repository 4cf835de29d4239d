"""Products of warpgroups in LLVM IR: the descriptor, the alignment of shared memory, and the fences."""

from msgspec.structs import replace

from gossamer_ir.core.build import index, index_var
from gossamer_ir.nodes import Allocate, Barrier, Buffer, Cast, For, Function, Load, Module, Store
from gossamer_llvm import WarpgroupProduct, emit, nvptx_lowering, warp_loop
from gossamer_llvm.abi import Abi

PRODUCT = WarpgroupProduct(
    instruction="wgmma.x",
    sums=4,
    operand_bits=16,
    descriptor=(2 << 62) | (32 << 32),
    immediates="1, 1, 1",
)


def text_of(depth_tiles):
    """The LLVM IR of a kernel with a product along so many tiles of B."""
    lane = index_var("lane")
    sums = Buffer("S", (index(4),), "float32", scope="local")
    a = Buffer("X", (index(8 * depth_tiles),), "float16", scope="local")
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
    body = (
        *map(Allocate, (sums, a, metadata, b)),
        Barrier(),
        For(
            lane.name,
            index(0),
            index(128),
            (warp_loop("p", replace(PRODUCT, steps=depth_tiles), tuple(stores)),),
            kind="thread_binding",
            thread="threadIdx.x",
        ),
    )
    module = Module("flat", (Function("f", (), body),), "f")
    abi = Abi(triple="nvptx64-nvidia-cuda", is_device=True)
    return emit(module, abi=abi, lowering=nvptx_lowering(has_async_copies=True))


def test_descriptors_have_the_addresses_of_tiles():
    text = text_of(2)
    # The mode of swizzling is in the highest bits: a constant of 64 bits is signed.
    assert text.count(f", {PRODUCT.descriptor - (1 << 64)}") == 2
    assert text.count("wgmma.x {") == 2


def test_tiles_begin_where_chunks_change_places():
    assert "align 1024" in text_of(1)


def test_stores_are_fenced_before_a_barrier():
    text = text_of(1)
    assert text.index("fence.proxy.async") < text.index("call void @llvm.nvvm.barrier")


def test_sums_are_in_registers_of_their_own():
    """Instructions write sums before the last one reads A, so that both may not be in the same registers."""
    assert '"=&f,=&f,=&f,=&f,0,1,2,3,' in text_of(1)
