"""Products whose schedules stage operands in shared memory: in the interpreter of the language, in that of
PTX, and assembled, against NumPy."""

from __future__ import annotations

import re

import numpy as np
import pytest
from msgspec.structs import replace

from gossamer_cuda_mma_sp.backend import CudaBackend
from gossamer_cuda_mma_sp.codegen.ptx import ptx_text, split_module
from gossamer_cuda_mma_sp.device_code import DeviceCode
from gossamer_cuda_mma_sp.export.ptxas import assemble_ptx, ptxas_path
from gossamer_cuda_mma_sp.target.gpu import gpu_of
from gossamer_ir.errors import ArgumentError, ScheduleError
from gossamer_ir.interchange.records import Target
from gossamer_ir.interpret import InterpreterError, run
from gossamer_ir.nodes import Allocate, AsyncCopy, Barrier, WaitGroup
from gossamer_ir.script import parse_module, print_expr, print_module
from gossamer_ir.traversal.walk import collect
from gossamer_lower import lower_to_flat
from tests.integration.block_problems import block_problem
from tests.integration.staged_products import (
    COLUMNS,
    DEPTH,
    ROWS,
    staged_bsr,
    staged_matmul,
    tiled_matmul,
)

TARGET = Target.parse("cuda-mma-sp:driver=interpreter")


def split(schedule):
    """The kernels of a schedule, with their barriers, and the program that launches them."""
    return split_module(lower_to_flat(schedule.module), gpu_of(TARGET))


def compiled(schedule):
    backend = CudaBackend()
    return backend.load(backend.compile(lower_to_flat(schedule.module), TARGET))


def dense_problem():
    random = np.random.default_rng(0)
    a = random.integers(-4, 5, (ROWS, DEPTH)).astype(np.float32)
    b = random.integers(-4, 5, (DEPTH, COLUMNS)).astype(np.float32)
    return {"a": a, "b": b, "c": np.zeros((ROWS, COLUMNS), np.float32)}


@pytest.mark.parametrize("threads", [32, 96, 256])
def test_a_dense_product_reads_tiles_from_shared_memory(threads):
    schedule = staged_matmul(threads=threads)
    shapes = {
        stmt.buffer.name: tuple(map(print_expr, stmt.buffer.shape))
        for stmt in collect(Allocate, split(schedule))
    }
    assert shapes == {"A_shared": ("16", "8"), "B_shared": ("8", "16")}
    arguments = dense_problem()
    run(split(schedule), arguments)
    np.testing.assert_array_equal(arguments["c"], arguments["a"] @ arguments["b"])
    arguments["c"][:] = np.nan
    compiled(schedule)(**arguments)
    np.testing.assert_array_equal(arguments["c"], arguments["a"] @ arguments["b"])


@pytest.mark.parametrize("size", [(8, 8, 32), (5, 3, 7), (2, 4, 9)], ids=str)
def test_blocks_of_bsr_are_staged_with_the_rows_that_they_need(size):
    height, width, features = size
    schedule = staged_bsr(height, width, features)
    sizes = {"bh": height, "bw": width, "feat": features}
    problem = block_problem(height, width, features)
    problem.require(compiled(schedule), sizes=sizes)
    problem.require(lambda **arguments: run(split(schedule), arguments), sizes=sizes)


@pytest.mark.parametrize("stages", [2, 3, 4])
def test_later_tiles_are_copied_while_earlier_ones_are_multiplied(stages):
    schedule = staged_matmul(threads=256, stages=stages)
    module = split(schedule)
    assert [node.pending for node in collect(WaitGroup, module)] == [stages - 2]
    assert len(collect(Barrier, module)) == 1
    assert len(collect(AsyncCopy, module)) == 2 * stages
    arguments = dense_problem()
    run(module, arguments)
    np.testing.assert_array_equal(arguments["c"], arguments["a"] @ arguments["b"])
    arguments["c"][:] = np.nan
    compiled(schedule)(**arguments)
    np.testing.assert_array_equal(arguments["c"], arguments["a"] @ arguments["b"])


@pytest.mark.parametrize("stages", [2, 3])
def test_blocks_of_a_row_are_copied_ahead(stages):
    """The numbers of blocks of rows vary: some have fewer than there are stages."""
    schedule = staged_bsr(4, 4, 8, threads=32, stages=stages)
    sizes = {"bh": 4, "bw": 4, "feat": 8}
    problem = block_problem(4, 4, 8, lengths=(0, 1, 2, 5))
    assert collect(AsyncCopy, split(schedule))
    problem.require(compiled(schedule), sizes=sizes)
    problem.require(lambda **arguments: run(split(schedule), arguments), sizes=sizes)


@pytest.mark.parametrize("defect", ["pending", "stages", "barrier"])
def test_a_wrong_pipeline_is_found(defect):
    """A wait for too few groups, too few stages, or no barrier after the wait."""
    text = print_module(split(staged_matmul(threads=256, stages=3)))
    change = {"pending": ("T.wait_group(1)", "T.wait_group(2)"), "stages": (" % 3", " % 2")}
    broken = parse_module(text.replace(*change.get(defect, ("T.barrier()", "pass"))))
    assert broken != parse_module(text)
    arguments = dense_problem()
    if defect == "pending":
        with pytest.raises(InterpreterError, match="which an asynchronous copy writes"):
            run(broken, arguments)
    backend = CudaBackend()
    artifact = backend.compile(lower_to_flat(staged_matmul(threads=256, stages=3).module), TARGET)
    code = DeviceCode("", broken)
    ptx = ptx_text(broken, gpu_of(TARGET))
    kernel = backend.load(replace(artifact, code=replace(code, ptx=ptx).encode()))
    with pytest.raises(ArgumentError, match=r"race: a thread|copy is not complete"):
        kernel(**arguments)


def test_a_missing_barrier_is_a_race():
    backend = CudaBackend()
    artifact = backend.compile(lower_to_flat(staged_matmul(threads=256).module), TARGET)
    code = DeviceCode.decode(artifact.code)
    assert code.ptx.count("bar.sync") == 2
    for barrier in re.finditer(r"bar\.sync\s+0;", code.ptx):
        without = code.ptx[: barrier.start()] + code.ptx[barrier.end() :]
        broken = replace(artifact, code=replace(code, ptx=without).encode())
        with pytest.raises(ArgumentError, match="race: a thread"):
            backend.load(broken)(**dense_problem())


def test_blocks_do_not_fill_the_shared_memory_of_others():
    """A copy for all blocks is refused: it is moved into the loop over blocks first."""
    schedule = tiled_matmul()
    schedule.bind("i_0", thread="blockIdx.x")
    with pytest.raises(ScheduleError) as caught:
        schedule.cache_read("matmul", buffer="B", scope="shared")
    assert caught.value.code == "schedule.cache_read.threads"


@pytest.mark.parametrize("architecture", ["sm_70", "sm_80", "sm_90", "sm_100"])
def test_ptxas_assembles_staged_products(architecture):
    if ptxas_path() is None:
        pytest.skip("there is no ptxas")
    target = Target.parse(f"cuda-mma-sp:arch={architecture}")
    for schedule in (staged_matmul(), staged_bsr(8, 8, 32, stages=3)):
        text = CudaBackend().texts(lower_to_flat(schedule.module), target)["ptx"]
        assert "bar.sync" in text
        result = assemble_ptx(text, architecture)
        assert result.cubin is not None or "is not defined" in (result.reason or ""), result.reason


def test_a_missing_barrier_between_loops_of_a_kernel_is_found_in_the_language():
    text = print_module(split(staged_matmul(threads=256)))
    assert text.count("T.barrier()") == 2
    for keep in range(2):
        pieces = text.split("T.barrier()")
        kept = ["pass", "pass"]
        kept[keep] = "T.barrier()"
        broken = parse_module(f"{pieces[0]}{kept[0]}{pieces[1]}{kept[1]}{pieces[2]}")
        with pytest.raises(InterpreterError, match="without a barrier between them"):
            run(broken, dense_problem())
