"""Vectors of global memory in PTX: one instruction for aligned ones, and one for each element of others."""

import re

import numpy as np
import pytest
from assembler import assembled

from gossamer_cuda_mma_sp.backend import CudaBackend
from gossamer_cuda_mma_sp.driver.interpreter_driver import InterpreterDriver
from gossamer_ir.interchange.records import Target
from gossamer_ir.script import parse_module

ROWS = 3
LINES = """
@T.prim_func
def copied(x: T.handle, y: T.handle, features: T.int64) -> None:
    T.stage("flat")
    X = T.match_buffer(x, (3, FEATURES), "DTYPE")
    Y = T.match_buffer(y, (3, FEATURES), "DTYPE")
    for b in T.thread_binding(3, thread="blockIdx.x"):
        for t in T.thread_binding(8, thread="threadIdx.x"):
            at: T.int64 = t * LANES
"""
PLAIN = "            Y[b, T.ramp(at, 1, LANES)] = X[b, T.ramp(at, 1, LANES)]\n"
MASK = "predicate=T.ramp(at, 1, LANES) < T.broadcast(features, LANES)"
MASKED = f"""            T.store(Y, b, T.ramp(at, 1, LANES), value=T.load(X, b, T.ramp(at, 1, LANES), {MASK},
                passthrough=T.broadcast(T.cast(0, "DTYPE"), LANES)), {MASK})
"""
VECTORS = [
    ("int8", 4, "b32"), ("int8", 16, "v4"), ("bool", 4, "b32"), ("float16", 2, "b32"), ("bfloat16", 8, "v4"),
    ("int32", 2, "v2"), ("float32", 4, "v4"), ("float64", 2, "v2"), ("int64", 4, "v2"),
]  # fmt: skip
BYTES = {
    "int8": 1, "bool": 1, "float16": 2, "bfloat16": 2, "int32": 4, "float32": 4, "float64": 8, "int64": 8,
}  # fmt: skip


def ptx(dtype="float32", lanes=4, *, features=None, architecture="sm_80", line=PLAIN):
    size = str(8 * lanes if features is None else features)
    text = (LINES + line).replace("FEATURES", size)
    for name, value in {"DTYPE": dtype, "LANES": str(lanes)}.items():
        text = text.replace(name, value)
    target = Target.parse(f"cuda-mma-sp:arch={architecture}")
    return CudaBackend().texts(parse_module(text), target)["ptx"]


def access_widths(text):
    return set(re.findall(r"(?:ld|st)\.global(?:\.nc)?\.(v[24]|b\d+)", text))


def without_element_stores(text, dtype):
    """Return a kernel whose scalar code stores nothing, so that only vectors do."""
    return re.sub(rf"^\s*st\.global\.b{8 * BYTES[dtype]}\b.*$", "", text, flags=re.MULTILINE)


def require_copied(text, size, *, features=None, shifts=(0, 0)):
    """Let a kernel copy between arrays that begin so many bytes after an aligned address."""
    driver = InterpreterDriver()
    source = np.random.default_rng(0).integers(0, 2, size, np.uint8)
    first, second = (driver.allocate(size + shift) + shift for shift in shifts)
    driver.copy_to_device(first, source, stream=0)
    driver.clear(second, size, stream=0)
    kernel = driver.get_function(driver.load_module(text), "gossamer_kernel")
    # The array that is written comes first, and the workspace last.
    sizes = [] if features is None else [np.int64(features)]
    arguments = [np.uint64(second), np.uint64(first), *sizes, np.uint64(0)]
    driver.launch(kernel, grid=(ROWS, 1, 1), block=(8, 1, 1), arguments=arguments, stream=0)
    copied = np.empty(size, np.uint8)
    driver.copy_to_host(copied, second, stream=0)
    np.testing.assert_array_equal(copied, source)


@pytest.mark.parametrize(("dtype", "lanes", "width"), VECTORS)
def test_one_instruction_accesses_an_aligned_vector(dtype, lanes, width):
    text = ptx(dtype, lanes)
    assert access_widths(text) == {width, f"b{8 * BYTES[dtype]}"}
    size = ROWS * 8 * lanes * BYTES[dtype]
    require_copied(without_element_stores(text, dtype), size)


@pytest.mark.parametrize(("dtype", "lanes", "width"), VECTORS)
def test_arrays_at_other_addresses_are_accessed_by_elements(dtype, lanes, width):
    text, element = ptx(dtype, lanes), BYTES[dtype]
    for shifts in ((element, 0), (0, element)):
        require_copied(text, ROWS * 8 * lanes * element, shifts=shifts)


@pytest.mark.parametrize("features", [32, 28, 4])
def test_a_mask_of_a_multiple_of_the_lanes_is_one_condition(features):
    text = without_element_stores(ptx(features="features", line=MASKED), "float32")
    require_copied(text, ROWS * features * 4, features=features)


@pytest.mark.parametrize("features", [31, 27, 6, 1])
def test_widths_that_do_not_fill_vectors_have_scalar_code(features):
    text = ptx(features="features", line=MASKED)
    require_copied(text, ROWS * features * 4, features=features)


def test_rows_of_a_constant_width_that_does_not_fill_vectors_have_no_second_copy():
    assert access_widths(ptx(features=33)) == {"b32"}


@pytest.mark.parametrize("architecture", ["sm_75", "sm_80", "sm_90", "sm_120"])
def test_ptxas_assembles_aligned_vectors(architecture, tmp_path):
    for text in (
        ptx("bfloat16", 8, architecture=architecture),
        ptx(features="features", architecture=architecture, line=MASKED),
    ):
        assert "0 bytes spill stores" in assembled(text, architecture, tmp_path)
