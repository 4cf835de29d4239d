"""Asynchronous copies in PTX: of every size, for arrays of every alignment, on architectures with and without
them."""

import numpy as np
import pytest
from assembler import assembled

from gossamer_cuda_mma_sp.backend import CudaBackend
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import Target
from gossamer_ir.script import parse_module

TEXT = """
@T.prim_func
def reversed_blocks(x: T.handle, y: T.handle) -> None:
    T.stage("flat")
    X = T.match_buffer(x, (SIZE + 1,), "DTYPE")
    Y = T.match_buffer(y, (SIZE,), "DTYPE")
    for b in T.thread_binding(2, thread="blockIdx.x"):
        S = T.alloc_buffer((SIZE // 2,), "DTYPE", scope="shared")
        for t in T.thread_binding(32, thread="threadIdx.x"):
            with T.async_copy():
                S[TARGET] = X[SOURCE]
            T.commit_group()
            T.wait_group(0)
            T.barrier()
            for i in T.serial(LANES):
                Y[b * (SIZE // 2) + t * LANES + i] = S[SIZE // 2 - 1 - t * LANES - i]
"""
COPIES = [
    ("float32", 1), ("float32", 2), ("float32", 4), ("float16", 2), ("float16", 8), ("int8", 16),
    ("float64", 1), ("float64", 2),
]  # fmt: skip


def program(dtype="float32", lanes=4, offset=0):
    size = 64 * lanes
    target, source = "t * LANES", f"b * (SIZE // 2) + t * LANES + {offset}"
    if lanes > 1:
        target, source = (f"T.ramp({base}, 1, LANES)" for base in (target, source))
    text = TEXT.replace("TARGET", target).replace("SOURCE", source)
    for name, value in {"SIZE": size, "LANES": lanes, "DTYPE": dtype}.items():
        text = text.replace(name, str(value))
    return parse_module(text)


def ptx(architecture="sm_80", **options):
    target = Target.parse(f"cuda-mma-sp:arch={architecture}")
    return CudaBackend().texts(program(**options), target)


def called(module, dtype="float32", lanes=4, offset=0, architecture="sm_80"):
    backend = CudaBackend()
    target = Target.parse(f"cuda-mma-sp:driver=interpreter,arch={architecture}")
    artifact = backend.compile(module, target)
    size = 64 * lanes
    x, y = (np.arange(size + 1) % 100).astype(dtype), np.zeros(size, dtype)
    backend.load(artifact)(x, y)
    expected = x[offset : offset + size].reshape(2, -1)[:, ::-1].ravel()
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize(("dtype", "lanes"), COPIES)
@pytest.mark.parametrize("offset", [0, 1])
def test_elements_are_copied_from_any_address(dtype, lanes, offset):
    """A copy of several elements tests whether its address is a multiple of its size."""
    options = {"dtype": dtype, "lanes": lanes, "offset": offset}
    called(program(**options), **options)


@pytest.mark.parametrize(("dtype", "lanes"), COPIES)
def test_an_instruction_copies_all_elements(dtype, lanes):
    text = ptx(dtype=dtype, lanes=lanes)["ptx"]
    size = np.dtype(dtype).itemsize * lanes
    cache = "cg" if size == 16 else "ca"
    assert f"cp.async.{cache}.shared.global" in text
    assert "cp.async.commit_group" in text
    assert "cp.async.wait_group" in text


@pytest.mark.parametrize("architecture", ["sm_70", "sm_75"])
def test_earlier_architectures_copy_by_registers(architecture):
    assert "cp.async" not in ptx(architecture)["ptx"]
    called(program(), architecture=architecture)


def test_a_read_before_the_wait_is_a_fault():
    text = """
@T.prim_func
def f(x: T.handle, y: T.handle) -> None:
    T.stage("flat")
    X = T.match_buffer(x, (32,), "float32")
    Y = T.match_buffer(y, (32,), "float32")
    S = T.alloc_buffer((2, 32), "float32", scope="shared")
    for t in T.thread_binding(32, thread="threadIdx.x"):
        for r in T.serial(2):
            with T.async_copy():
                S[r, t] = X[t]
            T.commit_group()
        T.wait_group(PENDING)
        Y[t] = S[ROW, t]
"""
    backend, target = CudaBackend(), Target.parse("cuda-mma-sp:driver=interpreter")
    for pending, row, is_complete in ((1, 0, True), (0, 1, True), (1, 1, False), (2, 0, False)):
        module = parse_module(text.replace("PENDING", str(pending)).replace("ROW", str(row)))
        x, y = np.arange(32, dtype=np.float32), np.zeros(32, np.float32)
        kernel = backend.load(backend.compile(module, target))
        if is_complete:
            kernel(x, y)
            np.testing.assert_array_equal(y, x)
        else:
            with pytest.raises(ArgumentError, match="asynchronous copy is not complete") as caught:
                kernel(x, y)
            assert caught.value.code == "cuda.fault"


@pytest.mark.parametrize("architecture", ["sm_70", "sm_80", "sm_86", "sm_90", "sm_120"])
def test_ptxas_assembles_copies(architecture, tmp_path):
    for dtype, lanes in COPIES:
        assembled(ptx(architecture, dtype=dtype, lanes=lanes)["ptx"], architecture, tmp_path)


def test_cuda_has_the_same_copies():
    text = ptx()["cuda"]
    assert "gs::copy_async<4>(&S[t * 4], &X[b * 128 + t * 4" in text
    assert "gs::wait_group<0>();" in text
