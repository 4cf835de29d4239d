"""PTX for kernels: what it has, what ptxas says of it, and what is refused."""

import pytest
from assembler import assembled

from gossamer_cuda_mma_sp.backend import CudaBackend
from gossamer_cuda_mma_sp.device_code import DeviceCode
from gossamer_cuda_mma_sp.target.architectures import ARCHITECTURES
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.interchange.records import Target

REVERSE = (
    'for b in T.thread_binding((n + 63) // 64, thread="blockIdx.x"):',
    '    S = T.alloc_buffer((64,), "float32", scope="shared")',
    "    for s in T.serial(2):",
    '        for t in T.thread_binding(64, thread="threadIdx.x"):',
    "            if b * 64 + t < n:",
    "                S[t] = X[b * 64 + t]",
    '        for u in T.thread_binding(64, thread="threadIdx.x"):',
    "            if b * 64 + 63 - u < n and b * 64 + u < n:",
    "                Y[b * 64 + u] = S[63 - u]",
)
SUM = (
    'for b in T.thread_binding((n + 63) // 64, thread="blockIdx.x"):',
    '    for t in T.thread_binding(64, thread="threadIdx.x"):',
    "        if b * 64 + t < n:",
    "            T.atomic_add(Y[0], X[b * 64 + t])",
)
SHUFFLES = (
    'for b in T.thread_binding(n // 40, thread="blockIdx.x"):',
    '    for t in T.thread_binding(20, thread="threadIdx.x"):',
    '        for u in T.thread_binding(2, thread="threadIdx.y"):',
    "            v: T.float32 = T.shuffle_xor(X[b * 40 + u * 20 + t], 1)",
    "            w: T.float32 = T.shuffle_down(v, 4, width=8)",
    "            Y[b * 40 + u * 20 + t] = w",
)
ELEMENTS = ("for i in T.serial(n):", "    Y[i] = T.max(X[i] / 3.0, X[i] * X[i])")


def ptx(module, target):
    return DeviceCode.decode(CudaBackend().compile(module, Target.parse(target)).code).ptx


def test_a_grid_becomes_special_registers_barriers_and_shared_memory(flat):
    text = ptx(flat(*REVERSE), "cuda-mma-sp:arch=sm_90")
    for part in ("%ctaid.x", "%tid.x", "bar.sync", ".shared .align 16", ".maxntid 64, 1, 1"):
        assert part in text
    assert ".extern" not in text


PRODUCTS = (
    'for b in T.thread_binding((n + 63) // 64, thread="blockIdx.x"):',
    '    for t in T.thread_binding(64, thread="threadIdx.x"):',
    '        L = T.alloc_buffer((1,), "float32", scope="local")',
    "        L[0] = 0.0",
    "        for s in T.serial(n):",
    "            L[0] = L[0] + X[s] * X[s]",
    "        if b * 64 + t < n:",
    "            Y[b * 64 + t] = L[0]",
)


def test_local_memory_is_a_register_and_a_product_is_added_in_one_instruction(flat):
    text = ptx(flat(*PRODUCTS), "cuda-mma-sp")
    assert text.count("fma.rn.f32") == 1
    assert text.count("st.global") == 1
    assert ".local" not in text


def test_an_atomic_accumulation_is_one_instruction(flat):
    assert "atom.global.add.f32" in ptx(flat(*SUM), "cuda-mma-sp")


@pytest.mark.parametrize("name", ARCHITECTURES)
@pytest.mark.parametrize(
    "lines", [REVERSE, SUM, ELEMENTS, SHUFFLES], ids=["reverse", "sum", "elements", "shuffles"]
)
def test_ptxas_assembles_the_kernels(name, lines, flat, tmp_path):
    text = ptx(flat(*lines), f"cuda-mma-sp:arch={name}")
    said = assembled(text, name, tmp_path)
    assert "0 bytes spill stores, 0 bytes spill loads" in said


@pytest.mark.parametrize("name", ["sm_80", "sm_90", "sm_120"])
def test_ptxas_assembles_dynamic_shared_memory(name, flat, tmp_path):
    """Memory that a launch asks for is external, and nothing else is."""
    module = flat(
        'for b in T.thread_binding(1, thread="blockIdx.x"):',
        '    S = T.alloc_buffer((14000,), "float32", scope="shared")',
        '    for t in T.thread_binding(32, thread="threadIdx.x"):',
        "        S[t] = X[t]",
        '    for u in T.thread_binding(32, thread="threadIdx.x"):',
        "        Y[u] = S[31 - u]",
    )
    artifact = CudaBackend().compile(module, Target.parse(f"cuda-mma-sp:arch={name}"))
    code = DeviceCode.decode(artifact.code)
    assert code.dynamic_bytes == {"gossamer_kernel": 56000}
    assert code.ptx.count(".extern") == 1
    assembled(code.ptx, name, tmp_path)


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        (
            ('S = T.alloc_buffer((n,), "float32", scope="local")', "S[0] = X[0]", "Y[0] = S[0]"),
            "llvm.allocate.device",
        ),
        (
            (
                'S = T.alloc_buffer((41729,), "float32", scope="shared")',
                'for t in T.thread_binding(4, thread="threadIdx.x"):',
                "    S[t] = X[t]",
            ),
            "llvm.shared",
        ),
        (
            (
                'for t in T.thread_binding(64, thread="threadIdx.x"):',
                '    for u in T.thread_binding(17, thread="threadIdx.y"):',
                "        Y[t * 17 + u] = 0.0",
            ),
            "llvm.threads",
        ),
    ],
)
def test_memory_and_threads_that_a_block_lacks_are_refused(lines, code, flat):
    with pytest.raises(UnsupportedError) as caught:
        CudaBackend().compile(flat(*lines), Target("cuda-mma-sp"))
    assert caught.value.code == code
