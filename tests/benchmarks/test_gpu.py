"""The command for GPUs: checks and times on the interpreter of PTX, and what it says without a GPU."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest
from msgspec.structs import replace
from scipy import sparse

from benchmarks import __main__
from benchmarks.contenders.contender import UnavailableError
from benchmarks.gpu import gpu_checks, gpu_command
from benchmarks.gpu.gpu_cases import (
    DTYPES_OF_BLOCKS,
    PRODUCT_DTYPES,
    block_case,
    gpu_cases,
    n_m_case,
)
from benchmarks.gpu.gpu_clocks import cupy_clock, torch_clock
from benchmarks.gpu.gpu_command import gpu_checks_sheet, gpu_times_sheet
from benchmarks.gpu.gpu_contenders import GPU_CONTENDERS
from benchmarks.gpu.gpu_goals import gpu_goals_sheet
from benchmarks.gpu.gpu_records import GpuCheck, GpuTime
from benchmarks.matrices import load_matrix
from benchmarks.options import GPU_TARGET
from gossamer_cuda_mma_sp.device.gpu_device import gpu_device
from tests.benchmarks.fake_libraries import Event, fake_cupy, fake_cusparse, fake_torch

pytestmark = [pytest.mark.unserialized, pytest.mark.no_error_examples]

TINY = (
    "gpu --target cuda-mma-sp:driver=interpreter --instructions 2 --programs 2 --conformance 2 --fuzzed 1 "
    "--op matmul_24 bsr_spmm --matrix --dtype float16 float8_e4m3 --size 32x64x8 --calls 1 "
    "--contenders gossamer torch cupy"
)


def test_a_tiny_run_is_checked_timed_and_stored(tmp_path, capsys):
    assert __main__.main([*TINY.split(), "--output", str(tmp_path)]) == 0
    (path,) = tmp_path.glob("gpu/*.json")
    run = json.loads(path.read_text())
    suites = ("instructions", "corpus", "conformance", "fuzzed", "operators")
    assert {(check["suite"], check["outcome"]) for check in run["checks"]} == {
        (suite, "correct") for suite in suites
    }
    time, float8_time, blocks = run["times"]
    assert (blocks["op"], blocks["errors"]) == ("bsr_spmm", {"gossamer": 0.0})
    assert (float8_time["dtype"], float8_time["errors"]) == ("float8_e4m3", {"gossamer": 0.0})
    assert time["medians"].keys() == {"gossamer"}
    assert time["missing"].keys() == {"torch", "cupy"}
    assert (time["errors"]["gossamer"], len(time["digest"])) == (0.0, 64)
    assert (run["driver"], run["cuda"]) == ("interpreter", "13.0")
    assert run["date"].startswith("20")
    assert "geometric mean" in capsys.readouterr().out


def test_without_a_gpu_the_status_is_2(monkeypatch, capsys):
    gpu_device.cache_clear()
    monkeypatch.setattr(
        "gossamer_cuda_mma_sp.driver.library_calls.CtypesCalls.__init__.__defaults__",
        ("libcuda-of-nothing.so",),
    )
    words = ["gpu", "--target", "cuda-mma-sp:driver=ctypes"]
    assert __main__.main(words) == gpu_command.NO_GPU == 2
    assert "nothing was run" in capsys.readouterr().out


WRONG = """
import json, sys
first, count = map(int, sys.argv[1:3])
for number in range(first, first + count):
    if number == 1:
        sys.exit("the driver died")
    wrong = "stopped [cuda.fault]" if number == 3 else None
    print(json.dumps({"name": str(number), "wrong": wrong, "skipped": None}), flush=True)
    if wrong:
        print(json.dumps({"name": "of a lost context", "wrong": "lost", "skipped": None}))
"""


def test_checks_go_on_after_a_program_that_ends_its_process():
    checks = list(gpu_checks._checks("corpus", ["-c", WRONG], (), 5))
    assert [(check.name, check.is_wrong) for check in checks] == [
        ("0", False),
        ("number 1", True),
        ("2", False),
        ("3", True),
        ("4", False),
    ]
    assert "the driver died" in checks[1].outcome


def test_a_product_of_small_integers_is_exact():
    made = n_m_case(8, 16, 4, "int8")
    left, right = made.case.operands
    assert (np.count_nonzero(left.reshape(8, 4, 4), axis=2) == 2).all()
    assert made.error(left.astype(np.float64) @ right.astype(np.float64)) == 0.0
    assert np.isnan(made.error(np.full((8, 4), np.nan)))


def time_of(**medians):
    return GpuTime("spmm", "cora", (2, 2), 3, 32, "float32", medians, {}, {}, None)


def test_tables_have_ratios_and_counts():
    sheet = gpu_times_sheet([time_of(gossamer=1.0, torch=2.0), time_of(gossamer=1.0, torch=0.5)])
    assert sheet.rows == [("spmm", "float32", "1.00 (1.00)", "1.00 (0.50)", "-", "-", "-", "-")]
    checks = [
        GpuCheck("corpus", "a", "correct"),
        GpuCheck("corpus", "b", "not run: why"),
        GpuCheck("corpus", "c", "wrong", is_wrong=True),
    ]
    assert gpu_checks_sheet(checks).rows == [("corpus", "1", "1", "1")]


def test_goals_are_about_some_cases_and_the_fastest_contender():
    def row_of(op, times):
        return next(row[1:] for row in gpu_goals_sheet(times).rows if row[0].startswith(op))

    fast = time_of(gossamer=1.0, torch=3.0, cusparse=2.0)
    slow = time_of(gossamer=1.0, torch=0.8)
    others = [replace(fast, features=16), replace(fast, matrix="bcsstk16"), time_of(torch=1.0)]
    assert row_of("spmm", [fast, *others]) == ("1", "2.00", "2.00", "met")
    assert row_of("spmm", [fast, slow]) == ("2", "1.26", "0.80", "missed")
    assert row_of("sddmm", [fast]) == ("0", "-", "-", "not measured")
    halves = replace(fast, op="matmul_24", dtype="float16", matrix="2:4", shape=(4096, 8192))
    equal = replace(halves, medians={"gossamer": 1.0, "cusparselt": 1.0})
    small = replace(equal, shape=(2048, 8192), medians={"gossamer": 2.0, "cusparselt": 1.0})
    assert row_of("matmul_24", [equal, small]) == ("1", "1.00", "1.00", "met")


TORCH, CUPY = fake_torch()["torch"], fake_cupy()["cupy"]


@pytest.fixture
def fake_libraries(monkeypatch):
    """PyTorch and CuPy that compute with NumPy."""
    for name, module in {**fake_torch(), **fake_cupy()}.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.delitem(sys.modules, "benchmarks.contenders.torch", raising=False)
    monkeypatch.setattr("benchmarks.gpu.gpu_contenders.CUSPARSE_LIBRARY", fake_cusparse())
    yield
    sys.modules.pop("benchmarks.contenders.torch", None)


@pytest.fixture(scope="module", autouse=True)
def small_graph(tmp_path_factory):
    """A matrix with the name of a data set, which this machine may lack."""
    folder = tmp_path_factory.mktemp("datasets")
    matrix = sparse.random_array((40, 40), density=0.2, format="csr", rng=1, dtype=np.float32)
    sparse.save_npz(folder / "cora.npz", matrix)
    load_matrix.cache_clear()
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("GOSSAMER_DATASETS", str(folder))
        yield
    load_matrix.cache_clear()


def small_case(op, dtype):
    """A problem that the interpreter of PTX solves quickly."""
    if op == "matmul_24":
        return n_m_case(16, 64, 16, dtype)
    if op == "bsr_spmm":
        return block_case(64, 128, 16, dtype)
    return next(gpu_cases((op,), ("cora",), (4,), (), ()))


CONTENDERS_OF = {
    "matmul_24": {"cusparselt"},
    "bsr_spmm": {"triton"},
    "sddmm": set(),
    "spmm": {"cupy", "cusparse"},
}
CASES = [
    *(("matmul_24", dtype) for dtype in PRODUCT_DTYPES),
    *(("bsr_spmm", dtype) for dtype in DTYPES_OF_BLOCKS),
    *((op, "float32") for op in ("spmm", "spmv", "sddmm")),
]


@pytest.mark.parametrize(("op", "dtype"), CASES)
def test_contenders_compute_the_result(op, dtype, fake_libraries):
    """All of them run, on libraries that stand in for those of a GPU."""
    case, expected = small_case(op, dtype), {"torch", *CONTENDERS_OF.get(op, {"cupy"})}
    errors = {}
    for name, prepare in GPU_CONTENDERS.items():
        if name == "gossamer":
            continue
        try:
            prepared = prepare(case.case, GPU_TARGET)
        except UnavailableError:
            continue
        assert prepared.clock(prepared.call) == 2e-3
        errors[name] = case.error(np.asarray(prepared.result()))
    assert errors.keys() == expected
    assert max(errors.values()) < 1e-5


@pytest.mark.parametrize(
    ("op", "dtype"),
    [
        ("bsr_spmm", "bfloat16"),
        ("matmul_24", "float16"),
        ("spmm", "float32"),
        ("sddmm", "float32"),
    ],
)
def test_gossamer_computes_on_arrays_of_a_gpu(op, dtype, gpu, monkeypatch):
    case = small_case(op, dtype)
    driver = gpu_device("ctypes", 0).driver
    # Memory of the usual size takes minutes in an interpreter.
    monkeypatch.setattr(driver, "limits", replace(driver.limits, cache_bytes=64))
    prepared = GPU_CONTENDERS["gossamer"](case.case, "cuda-mma-sp:driver=ctypes")
    before = len(gpu.calls)
    assert prepared.clock(prepared.call) > 0
    assert "cuEventElapsedTime" in gpu.calls[before:]
    assert case.error(prepared.result()) < 1e-5


@pytest.mark.parametrize("clock", [torch_clock(TORCH), cupy_clock(CUPY)], ids=["torch", "cupy"])
def test_caches_are_flushed_before_the_first_event(clock):
    Event.log.clear()
    assert clock(lambda: Event.log.append("call")) == 2e-3
    assert Event.log == ["flush", "record", "call", "record", "wait"]
