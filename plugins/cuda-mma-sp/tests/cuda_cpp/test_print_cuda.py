"""Kernels as CUDA C++: their text, and what is refused."""

import re
from importlib import resources
from typing import get_args

import pytest

from gossamer_cuda_mma_sp.codegen.ptx import split_module
from gossamer_cuda_mma_sp.cuda_cpp.expressions import CPP_NAMES
from gossamer_cuda_mma_sp.cuda_cpp.print_cuda import print_cuda
from gossamer_cuda_mma_sp.device_code import DeviceCode, kernels_of
from gossamer_cuda_mma_sp.target.gpu import gpu_of
from gossamer_ir.core.math_functions import INSTRUCTIONS
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.interchange.records import Target
from gossamer_ir.nodes import BinaryOp, CompareOp, ReduceOp, UnaryOp


def printed(module):
    """The kernels of a flat module, without the prelude."""
    split = split_module(module, gpu_of(Target("cuda-mma-sp")))
    text = print_cuda(kernels_of(split), DeviceCode("", split).symbols)
    return text.partition("}  // namespace gs")[2].strip()


@pytest.mark.parametrize("op", [*get_args(BinaryOp), *get_args(UnaryOp), *get_args(CompareOp)])
def test_each_operation_of_vectors_is_in_the_prelude(op):
    prelude = resources.files("gossamer_cuda_mma_sp.cuda_cpp").joinpath("prelude.cuh").read_text()
    name = CPP_NAMES.get(op, op)
    assert any(f"{kind}({name})" in prelude for kind in ("GS_UNARY", "GS_BINARY"))


@pytest.mark.parametrize("name", sorted(INSTRUCTIONS))
def test_each_math_function_that_is_an_instruction_is_in_the_prelude(name):
    prelude = resources.files("gossamer_cuda_mma_sp.cuda_cpp").joinpath("prelude.cuh").read_text()
    scalar_function = rf"__device__ T {name}\(T|GS_FUNCTION\({name},"
    vector_function = rf"__device__ vec<T, N> {name}\(|GS_UNARY\({name}\)"
    assert re.search(scalar_function, prelude)
    assert re.search(vector_function, prelude)


@pytest.mark.parametrize("op", get_args(ReduceOp))
def test_each_reducer_of_lanes_is_in_the_prelude(op):
    prelude = resources.files("gossamer_cuda_mma_sp.cuda_cpp").joinpath("prelude.cuh").read_text()
    assert f"GS_REDUCTION({CPP_NAMES.get(op, op)})" in prelude


EXCHANGE = (
    'for b in T.thread_binding((n + 63) // 64, thread="blockIdx.x"):',
    '    S = T.alloc_buffer((64,), "float32", scope="shared")',
    '    for t in T.thread_binding(64, thread="threadIdx.x"):',
    "        S[t] = X[b * 64 + t]",
    '    for u in T.thread_binding(64, thread="threadIdx.x"):',
    "        Y[b * 64 + u] = S[63 - u]",
)


def test_a_grid_has_threads_shared_memory_and_barriers(flat):
    lines = [line.strip() for line in printed(flat(*EXCHANGE)).splitlines()]
    assert "__launch_bounds__(64)" in lines[0]
    order = ("const int64_t b = blockIdx.x;", "__shared__ float S[64];", "__syncthreads();")
    assert [line for line in lines if line in order] == list(order)


def test_a_failed_guard_stores_the_number_of_its_buffer(flat):
    text = printed(flat("T.guard(n > 3, X)", "T.guard(n > 4, Y)", "Y[4] = X[3]"))
    assert text.count("atomicExch") == 2
    assert "(workspace + 2), 0ull)" in text
    assert "(workspace + 2), 1ull)" in text


def test_words_of_cpp_become_other_names(flat):
    text = printed(flat("for int in T.serial(n):", "    EOF = X[int] + 1.0", "    Y[int] = EOF"))
    assert "const float EOF_ = X[int_] + 0x1.0000000000000p+0f;" in text
    assert "Y[int_] = EOF_;" in text


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
def test_operations_of_each_dtype(dtype, flat):
    text = printed(flat("Y[0] = X[0] * X[1]", dtype=dtype))
    product = "X[0] * X[1]"
    called = "gs::mul(X[0], X[1])"
    assert f"Y[0] = {product if dtype == 'float32' else called};" in text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("X[0] - (X[1] + X[2])", "X[0] - (X[1] + X[2])"),
        ("X[0] - X[1] - X[2]", "X[0] - X[1] - X[2]"),
        ("(X[0] + X[1]) * X[2] / X[3]", "(X[0] + X[1]) * X[2] / X[3]"),
        ("X[n * n * n * n]", "X[gs::mul(gs::mul(gs::mul(n, n), n), n)]"),
    ],
)
def test_parentheses_and_integers_that_may_overflow(value, text, flat):
    assert f"Y[0] = {text};" in printed(flat(f"Y[0] = {value}"))


@pytest.mark.parametrize(
    "lines",
    [
        ('S = T.alloc_buffer((n,), "float32", scope="local")', "S[0] = X[0]", "Y[0] = S[0]"),
        ("Y[0] = T.exp(X[0])",),
        ("Y[T.ramp(0, 1, T.vscale() * 4)] = X[T.ramp(0, 1, T.vscale() * 4)]",),
        ("for i in T.vectorized(4):", "    Y[i] = X[i]"),
    ],
)
def test_what_only_llvm_lowers_is_refused(lines, flat):
    with pytest.raises(UnsupportedError) as caught:
        printed(flat(*lines))
    assert caught.value.code == "cuda.cpp"
