"""Atomic updates in global memory and in the memory of a block, of elements of all dtypes."""

import numpy as np
import pytest
from assembler import assembled

from gossamer_cuda_mma_sp.backend import CudaBackend
from gossamer_cuda_mma_sp.device_code import DeviceCode
from gossamer_ir.interchange.records import Target
from gossamer_ir.interpret import run
from gossamer_ir.script import parse_module

DTYPES = (
    "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
    "float16", "bfloat16", "float32", "float64",
)  # fmt: skip
COMBINE = {"add": np.add, "min": np.minimum, "max": np.maximum}
COUNT, RESULTS = 128, 5
GLOBAL = """
    for b in T.thread_binding(2, thread="blockIdx.x"):
        for t in T.thread_binding(32, thread="threadIdx.x"):
            for u in T.thread_binding(2, thread="threadIdx.y"):
                T.atomic_{op}(Y[(b * 64 + u * 32 + t) % 5], X[b * 64 + u * 32 + t])
"""
SHARED = """
    for b in T.thread_binding(1, thread="blockIdx.x"):
        S = T.alloc_buffer((5,), "{dtype}", scope="shared")
        for k in T.serial(2):
            for v in T.thread_binding(32, thread="threadIdx.x"):
                if v < 5:
                    S[4 - v] = Y[4 - v]
            for t in T.thread_binding(32, thread="threadIdx.x"):
                for u in T.serial(2):
                    T.atomic_{op}(S[(k * 64 + u * 32 + t) % 5], X[k * 64 + u * 32 + t])
            for w in T.thread_binding(32, thread="threadIdx.x"):
                if w < 5:
                    Y[w] = S[w]
"""
BODIES = {"global": GLOBAL, "shared": SHARED}


def module_of(scope, op, dtype):
    return parse_module(
        f"""
@T.prim_func
def f(x: T.handle, y: T.handle) -> None:
    T.stage("flat")
    X = T.match_buffer(x, ({COUNT},), "{dtype}")
    Y = T.match_buffer(y, ({RESULTS},), "{dtype}"){BODIES[scope].format(op=op, dtype=dtype)}"""
    )


def numbers(dtype, count, seed):
    """Random numbers, among them the least and the greatest, or infinities and NaN, as the array has them."""
    random = np.random.default_rng(seed)
    if "int" in dtype:
        ends = np.iinfo(dtype)
        values = random.integers(ends.min, ends.max, count, dtype=dtype, endpoint=True)
        values[:2] = ends.min, ends.max
        return values
    values = random.integers(-3, 4, count).astype(np.float32)
    values[:3] = np.nan, np.inf, 2
    is_bfloat = dtype == "bfloat16"
    return (values.view(np.uint32) >> 16).astype(np.uint16) if is_bfloat else values.astype(dtype)


def as_numbers(array, dtype):
    """The numbers of an array; those of bfloat16 are the upper halves of float32."""
    return (array.astype(np.uint32) << 16).view(np.float32) if dtype == "bfloat16" else array


@pytest.mark.parametrize("op", COMBINE)
@pytest.mark.parametrize("scope", BODIES)
def test_all_updates_of_an_element_are_combined(scope, op):
    for dtype in DTYPES:
        module = module_of(scope, op, dtype)
        x, y = numbers(dtype, COUNT, 1), numbers(dtype, RESULTS, 2)
        expected = as_numbers(y, dtype).copy()
        with np.errstate(all="ignore"):
            COMBINE[op].at(expected, np.arange(COUNT) % RESULTS, as_numbers(x, dtype))
        backend = CudaBackend()
        target = Target.parse("cuda-mma-sp:driver=interpreter")
        results = y.copy()
        backend.load(backend.compile(module, target))(x, results)
        assert np.array_equal(as_numbers(results, dtype), expected, equal_nan="float" in dtype), (
            dtype
        )


@pytest.mark.parametrize("scope", BODIES)
def test_the_reference_interpreter_agrees(scope):
    x, y = numbers("int32", COUNT, 1), numbers("int32", RESULTS, 2)
    expected = y.copy()
    np.maximum.at(expected, np.arange(COUNT) % RESULTS, x)
    run(module_of(scope, "max", "int32"), {"x": x, "y": y})
    assert np.array_equal(y, expected)


@pytest.mark.parametrize("architecture", ["sm_75", "sm_90"])
@pytest.mark.parametrize("dtype", ["int8", "uint16", "bfloat16", "float64"])
def test_ptxas_assembles_updates_of_a_block(dtype, architecture, tmp_path):
    for op in COMBINE:
        target = Target.parse(f"cuda-mma-sp:arch={architecture}")
        artifact = CudaBackend().compile(module_of("shared", op, dtype), target)
        assembled(DeviceCode.decode(artifact.code).ptx, architecture, tmp_path)
