"""The command for GPUs: checks and times on the interpreter of PTX, and what it says without a GPU."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks import __main__
from benchmarks.gpu import gpu_checks, gpu_command
from benchmarks.gpu.gpu_cases import n_m_case
from benchmarks.gpu.gpu_clocks import cupy_clock, torch_clock
from benchmarks.gpu.gpu_command import gpu_checks_sheet, gpu_times_sheet
from benchmarks.gpu.gpu_records import GpuCheck, GpuTime
from gossamer_cuda_mma_sp.device.gpu_device import gpu_device

pytestmark = [pytest.mark.unserialized, pytest.mark.no_error_examples]

TINY = (
    "gpu --target cuda-mma-sp:driver=interpreter --programs 2 --fuzzed 1 --op matmul_24 --matrix "
    "--size 16x16x8 --calls 1 --contenders gossamer torch cupy"
)


def test_a_tiny_run_is_checked_timed_and_stored(tmp_path, capsys):
    assert __main__.main([*TINY.split(), "--output", str(tmp_path)]) == 0
    (path,) = tmp_path.glob("gpu/*.json")
    run = json.loads(path.read_text())
    outcomes = {(check["suite"], check["outcome"]) for check in run["checks"]}
    assert outcomes == {(suite, "correct") for suite in ("corpus", "fuzzed", "operators")}
    (time,) = run["times"]
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
    made = n_m_case(8, 16, 4)
    left, right = made.case.operands
    assert (np.count_nonzero(left.reshape(8, 4, 4), axis=2) == 2).all()
    assert made.error(left.astype(np.float64) @ right.astype(np.float64)) == 0.0
    assert np.isnan(made.error(np.full((8, 4), np.nan)))


def time_of(**medians):
    return GpuTime("spmm", "cora", (2, 2), 3, 32, "float32", medians, {}, {}, None)


def test_tables_have_ratios_and_counts():
    sheet = gpu_times_sheet([time_of(gossamer=1.0, torch=2.0), time_of(gossamer=1.0, torch=0.5)])
    assert sheet.rows == [("spmm", "1.00 (1.00)", "1.00 (0.50)", "-", "-")]
    checks = [
        GpuCheck("corpus", "a", "correct"),
        GpuCheck("corpus", "b", "not run: why"),
        GpuCheck("corpus", "c", "wrong", is_wrong=True),
    ]
    assert gpu_checks_sheet(checks).rows == [("corpus", "1", "1", "1")]


class Event:
    """An event of torch and of CuPy."""

    log: list[str] = []  # noqa: RUF012

    def __init__(self, **options):
        pass

    def record(self):
        self.log.append("record")

    def synchronize(self):
        self.log.append("wait")

    def elapsed_time(self, end):
        return 2.0


class Buffer:
    def zero_(self):
        Event.log.append("flush")

    def fill(self, value):
        Event.log.append("flush")


TORCH = SimpleNamespace(
    int8="int8",
    empty=lambda size, **options: Buffer(),
    cuda=SimpleNamespace(Event=Event, get_device_properties=lambda number: SimpleNamespace()),
)
CUPY = SimpleNamespace(
    int8="int8",
    empty=lambda size, dtype: Buffer(),
    cuda=SimpleNamespace(
        Event=Event,
        Device=lambda number: SimpleNamespace(attributes={}),
        get_elapsed_time=lambda start, end: 2.0,
    ),
)


@pytest.mark.parametrize("clock", [torch_clock(TORCH), cupy_clock(CUPY)], ids=["torch", "cupy"])
def test_caches_are_flushed_before_the_first_event(clock):
    Event.log.clear()
    assert clock(lambda: Event.log.append("call")) == 2e-3
    assert Event.log == ["flush", "record", "call", "record", "wait"]
