"""Programs of the corpus, printed as CUDA C++ and compiled by nvcc, in the interpreter of PTX.

nvcc knows nothing of LLVM's code for them: where both are right, so are the emitter and the printer. A
sample, since each takes a second; every program is run by hand when the printer changes.
"""

import subprocess

import numpy as np
import pytest
from cuda_toolchain import toolchain_program
from msgspec.structs import replace

from gossamer_cuda_mma_sp.backend import CudaBackend
from gossamer_cuda_mma_sp.cuda_cpp.print_cuda import print_cuda
from gossamer_cuda_mma_sp.device_code import DeviceCode, kernels_of
from gossamer_ir.interchange.records import Target
from gossamer_testkit import BackendSuite, corpus_names

TARGET = "cuda-mma-sp:driver=interpreter"
SAMPLE = corpus_names()[7::29]


class NvccBackend(CudaBackend):
    """Compiles kernels with nvcc."""

    def __init__(self, folder):
        self._folder = folder

    def compile(self, module, target):
        artifact = super().compile(module, target)
        code = DeviceCode.decode(artifact.code)
        if not code.symbols:
            return artifact
        text = print_cuda(kernels_of(code.module), code.symbols)
        compiled = DeviceCode(self._ptx(text), code.module)
        return replace(artifact, code=compiled.encode())

    def _ptx(self, text):
        source, ptx = self._folder / "kernels.cu", self._folder / "kernels.ptx"
        source.write_text(text)
        command = [toolchain_program("nvcc"), "-ptx", "-arch=sm_80", "-std=c++17", "-fmad=false"]
        done = subprocess.run(
            [*command, "-o", str(ptx), str(source)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr + text
        return ptx.read_text()


pytestmark = pytest.mark.skipif(
    toolchain_program("nvcc") is None, reason="there is no nvcc: install nvidia-cuda-nvcc"
)


@pytest.mark.parametrize("program", SAMPLE)
def test_a_program_of_the_corpus_is_correct(program, tmp_path):
    class Suite(BackendSuite):
        backend = NvccBackend(tmp_path)
        targets = (TARGET,)

    Suite().test_a_module_of_the_corpus_is_correct(program, TARGET)


@pytest.mark.parametrize(("dtype", "threads"), [("float64", 48), ("int8", 16)])
def test_threads_exchange_values(dtype, threads, flat, tmp_path):
    module = flat(
        'for b in T.thread_binding(2, thread="blockIdx.x"):',
        "    Y[b] = 0",
        f'    for t in T.thread_binding({threads}, thread="threadIdx.x"):',
        f"        Y[b] = Y[b] + X[b * {threads} + t]",
        dtype=dtype,
    )
    backend = NvccBackend(tmp_path)
    kernel = backend.load(backend.compile(module, Target.parse(TARGET)))
    x = np.arange(2 * threads).astype(dtype)
    y = np.zeros_like(x)
    kernel(x, y, x.size)
    assert "shfl.sync" in (tmp_path / "kernels.ptx").read_text()
    np.testing.assert_array_equal(y[:2], x.reshape(2, -1).sum(axis=1, dtype=dtype))


def test_more_shared_memory_than_is_static_is_dynamic(flat, tmp_path):
    module = flat(
        'for b in T.thread_binding(1, thread="blockIdx.x"):',
        '    S = T.alloc_buffer((5,), "int8", scope="shared")',
        '    L = T.alloc_buffer((16384,), "float32", scope="shared")',
        '    for t in T.thread_binding(32, thread="threadIdx.x"):',
        "        if t < 5:",
        "            S[t] = T.int8(t)",
        "        L[16352 + t] = X[t]",
        '    for u in T.thread_binding(32, thread="threadIdx.x"):',
        "        Y[u] = L[16383 - u] + T.float32(S[u % 5])",
    )
    backend = NvccBackend(tmp_path)
    kernel = backend.load(backend.compile(module, Target.parse(TARGET)))
    x, y = np.arange(32, dtype=np.float32), np.zeros(32, np.float32)
    kernel(x, y, x.size)
    assert (
        ".extern .shared .align 16 .b8 gossamer_kernel_shared_65552[]"
        in (tmp_path / "kernels.ptx").read_text()
    )
    np.testing.assert_array_equal(y, x[::-1] + np.arange(32) % 5)
