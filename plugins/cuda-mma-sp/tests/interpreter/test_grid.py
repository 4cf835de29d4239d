"""Kernels in the interpreter of PTX, and the mistakes that it finds."""

import numpy as np
import pytest

from gossamer_cuda_mma_sp.backend import CudaBackend
from gossamer_cuda_mma_sp.device_code import DeviceCode
from gossamer_cuda_mma_sp.interpreter.grid import run_grid
from gossamer_cuda_mma_sp.interpreter.memory import DeviceFaultError, GlobalMemory
from gossamer_cuda_mma_sp.interpreter.program import parse_ptx
from gossamer_ir.interchange.records import Target

EXCHANGE = (
    'for b in T.thread_binding(2, thread="blockIdx.x"):',
    '    S = T.alloc_buffer((64,), "float32", scope="shared")',
    '    for t in T.thread_binding(64, thread="threadIdx.x"):',
    "        S[t] = X[b * 64 + t]",
    '    for u in T.thread_binding(64, thread="threadIdx.x"):',
    "        Y[b * 64 + u] = S[63 - u]",
)


def interpreted(module, arrays, *scalars, grid=(2, 1, 1), block=(64, 1, 1), change=str):
    """Run the first kernel of a module on arrays; `change` changes its PTX."""
    artifact = CudaBackend().compile(module, Target("cuda-mma-sp"))
    program = parse_ptx(change(DeviceCode.decode(artifact.code).ptx))["gossamer_kernel"]
    memory = GlobalMemory()
    addresses = [memory.allocate(array.nbytes) for array in arrays]
    for address, array in zip(addresses, arrays, strict=True):
        memory.write(address, array)
    workspace = memory.allocate(32)
    run_grid(program, memory, grid=grid, block=block, arguments=[*addresses, *scalars, workspace])
    for address, array in zip(addresses, arrays, strict=True):
        array[...] = memory.read(address, array.nbytes).view(array.dtype)


def test_threads_exchange_values_over_shared_memory(flat):
    x, y = np.arange(128, dtype=np.float32), np.zeros(128, np.float32)
    interpreted(flat(*EXCHANGE), [x, y], 128)
    assert np.array_equal(y.reshape(2, 64), x.reshape(2, 64)[:, ::-1])


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("bar.sync", "// bar.sync", "race: a thread reads an element of shared memory"),
        ("st.shared.b32", "// st.shared.b32", "shared memory that nothing wrote"),
        ("bar.sync \t0;", "@%p9 bar.sync 0;", "register %p9, which nothing wrote"),
        ("%tid.x", "%tid.y", "two threads write one element"),
    ],
)
def test_a_kernel_with_a_mistake_is_an_error(old, new, fault, flat):
    def change(text):
        assert old in text
        return text.replace(old, new).replace(".reg .b32", ".reg .pred %p<10>;\n.reg .b32", 1)

    x, y = np.arange(128, dtype=np.float32), np.zeros(128, np.float32)
    with pytest.raises(DeviceFaultError, match=fault):
        interpreted(flat(*EXCHANGE), [x, y], 128, change=change)


def test_an_update_of_what_another_thread_has_just_written_is_an_error(flat):
    lines = (
        'for b in T.thread_binding(1, thread="blockIdx.x"):',
        '    S = T.alloc_buffer((64,), "float32", scope="shared")',
        '    for t in T.thread_binding(64, thread="threadIdx.x"):',
        "        S[t] = 0.0",
        '    for u in T.thread_binding(64, thread="threadIdx.x"):',
        "        T.atomic_add(S[(u + 1) % 64], X[u])",
        '    for v in T.thread_binding(64, thread="threadIdx.x"):',
        "        Y[v] = S[v]",
    )
    x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    interpreted(flat(*lines), [x, y], 64, grid=(1, 1, 1))
    assert np.array_equal(y, np.roll(x, 1))
    with pytest.raises(DeviceFaultError, match="that another one writes plainly"):
        interpreted(
            flat(*lines),
            [x, y],
            64,
            grid=(1, 1, 1),
            change=lambda text: text.replace("bar.sync", "// "),
        )


def test_an_access_out_of_bounds_is_an_error(flat):
    x, y = np.zeros(64, np.float32), np.zeros(128, np.float32)
    with pytest.raises(DeviceFaultError, match="global memory out of bounds"):
        interpreted(flat(*EXCHANGE), [x, y], 128)


def test_blocks_cannot_be_ordered_by_a_barrier(flat):
    lines = (
        'for b in T.thread_binding(2, thread="blockIdx.x"):',
        '    for t in T.thread_binding(64, thread="threadIdx.x"):',
        "        Y[b * 64 + t] = X[t]",
    )

    def same_elements(text):
        assert "%ctaid.x" in text
        return text.replace("%ctaid.x", "%ctaid.y")

    x, y = np.zeros(128, np.float32), np.zeros(128, np.float32)
    with pytest.raises(DeviceFaultError, match="two threads write one element of global memory"):
        interpreted(flat(*lines), [x, y], 128, change=same_elements)


MOVED = """
.visible .entry f(.param .u64 f_param_0)
{
    .reg .b64 %rd<4>;
    ld.param.b64 %rd1, [f_param_0];
    mov.b64 %rd2, 0dBFF0000000000000;
    mul.rn.f64 %rd3, %rd2, 0d4008000000000000;
    st.global.b64 [%rd1], %rd3;
    ret;
}
"""


def test_a_literal_of_a_float_that_is_moved_keeps_its_bits():
    memory = GlobalMemory()
    address = memory.allocate(8)
    run_grid(parse_ptx(MOVED)["f"], memory, grid=(1, 1, 1), block=(1, 1, 1), arguments=[address])
    assert memory.read(address, 8).view(np.float64).tolist() == [-3.0]


DIVERGENT = """
.visible .entry f()
{
    .reg .b32 %r<2>;
    .reg .pred %p<2>;
    mov.u32 %r1, %tid.x;
    setp.lt.u32 %p1, %r1, 3;
    @%p1 bra SOME;
    bra END;
SOME:
    bar.sync 0;
END:
    ret;
}
"""


def test_a_barrier_that_some_threads_do_not_reach_is_an_error():
    program = parse_ptx(DIVERGENT)["f"]
    run_grid(program, GlobalMemory(), grid=(1, 1, 1), block=(3, 1, 1), arguments=[])
    with pytest.raises(DeviceFaultError, match="some threads of a block reach a barrier"):
        run_grid(program, GlobalMemory(), grid=(1, 1, 1), block=(8, 1, 1), arguments=[])


REJOINING = """
.visible .entry f(.param .u64 f_param_0)
{
    .reg .b32 %r<3>;
    .reg .b64 %rd<4>;
    .reg .pred %p<2>;
    ld.param.b64 %rd1, [f_param_0];
    mov.u32 %r1, %tid.x;
    setp.eq.u32 %p1, %r1, 0;
    @%p1 bra FIRST;
JOIN:
    shfl.sync.bfly.b32 %r2, %r1, 1, 31, 3;
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd3, %rd1, %rd2;
    st.global.b32 [%rd3], %r2;
    ret;
FIRST:
    bra JOIN;
}
"""


def test_lanes_wait_at_a_shuffle_for_those_that_come_later():
    memory = GlobalMemory()
    address = memory.allocate(8)
    run_grid(
        parse_ptx(REJOINING)["f"], memory, grid=(1, 1, 1), block=(2, 1, 1), arguments=[address]
    )
    assert memory.read(address, 8).view(np.int32).tolist() == [1, 0]


def test_a_shuffle_that_some_lanes_do_not_reach_is_an_error():
    program = parse_ptx(REJOINING.replace("bra JOIN", "ret"))["f"]
    memory = GlobalMemory()
    arguments = [memory.allocate(8)]
    with pytest.raises(DeviceFaultError, match="some lanes of a warp reach a shuffle"):
        run_grid(program, memory, grid=(1, 1, 1), block=(2, 1, 1), arguments=arguments)


LOCAL = """
.visible .entry f(.param .u64 f_param_0)
{
    .local .align 16 .b8 depot[20];
    .reg .b32 %r<3>;
    .reg .b64 %rd<4>;
    ld.param.b64 %rd1, [f_param_0];
    mov.b64 %rd2, depot;
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd3, %r1, 4;
    add.s64 %rd1, %rd1, %rd3;
    st.local.b32 [%rd2+16], %r1;
    ld.local.b32 %r2, [%rd2+16];
    st.global.b32 [%rd1], %r2;
    ret;
}
"""


def run_with_local_memory(text):
    """Run three threads, each of which stores its number."""
    memory = GlobalMemory()
    address = memory.allocate(12)
    program = parse_ptx(text)["f"]
    run_grid(program, memory, grid=(1, 1, 1), block=(3, 1, 1), arguments=[address])
    return memory.read(address, 12).view(np.int32).tolist()


@pytest.mark.parametrize(
    ("store", "load"),
    [
        ("st.local.b32 [%rd2+16], %r1", "ld.local.b32 %r2, [%rd2+16]"),
        ("st.local.v2.b32 [%rd2+8], {%r1, %r1}", "ld.local.b32 %r2, [%rd2+12]"),
        ("st.local.v4.b32 [%rd2], {0, 7, %r1, 9}", "ld.local.v4.b32 {_, _, %r2, _}, [%rd2]"),
    ],
)
def test_each_thread_has_local_memory_of_its_own(store, load):
    text = LOCAL.replace("st.local.b32 [%rd2+16], %r1", store)
    assert run_with_local_memory(text.replace("ld.local.b32 %r2, [%rd2+16]", load)) == [0, 1, 2]


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("st.local.b32 [%rd2+16]", "st.local.b32 [%rd2+20]", "local memory out of bounds"),
        ("st.local.b32 [%rd2+16]", "st.local.b32 [%rd2+32]", "local memory out of bounds"),
        ("st.local.b32 [%rd2+16]", "st.local.b32 [%rd2+-4]", "local memory out of bounds"),
        ("st.local.b32 [%rd2+16]", "st.local.b32 [%rd2+18]", "not a multiple of 4"),
        ("st.local.b32 [%rd2+16], %r1", "st.local.v2.b32 [%rd2+12], {%r1, %r1}", "multiple of 8"),
        ("st.local.b32 [%rd2+16], %r1", "st.local.v2.b32 [%rd2+16], {%r1, %r1}", "out of bounds"),
        ("%r2, [%rd2+16]", "%r2, [%rd2+8]", "local memory that nothing wrote"),
        ("ld.local.b32 %r2, [%rd2+16]", "ld.local.b64 %rd3, [%rd2+16]", "out of bounds"),
    ],
)
def test_a_mistake_with_local_memory_is_an_error(old, new, fault):
    assert old in LOCAL
    with pytest.raises(DeviceFaultError, match=fault):
        run_with_local_memory(LOCAL.replace(old, new))
