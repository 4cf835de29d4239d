"""Small problems, cells and runs for the tests of the benchmark harness."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from benchmarks import matrices, records
from benchmarks.harness import tasks
from benchmarks.harness.rounds import SamplingPlan
from benchmarks.machine import machine_description
from benchmarks.machine.roofline import ReadBandwidth, Roofline
from benchmarks.operators import PROBLEMS
from benchmarks.parts.call_overhead import CallCost
from benchmarks.parts.compile_time import CompileTime
from benchmarks.parts.mini_batches import MiniBatches
from benchmarks.parts.python_share import PythonShare
from benchmarks.parts.startup import Startup
from gossamer_testkit import attention, sddmm, spmm, spmv

QUICK = SamplingPlan(rounds=4, sample_seconds=1e-4, pause_seconds=0.0, budget_seconds=5.0)
CSR = np.array([[1, 0, 2, 0], [0, 0, 0, 0], [0, 3, 0, 0]], dtype=np.float32)
EMPTY = np.zeros((3, 4), dtype=np.float32)


def problem(op="spmm", features=3, dense=CSR, dtype="float32"):
    if op == "bsr_spmm":
        matrix = matrices.random_blocks("blocks_tiny", 12, 4, 0.4, dtype=dtype)
    else:
        matrix = matrices.canonical_matrix("tiny", sparse.csr_matrix(dense), dtype)
    return PROBLEMS[op](matrix, 1 if op == "spmv" else features)


def exact(posed):
    """The result of a problem by the oracles of the testkit, for each row of the stored elements."""
    if posed.op in ("spmm", "spmv", "bsr_spmm"):
        product = spmv if posed.op == "spmv" else spmm
        return product(posed.csr, *posed.operands)
    return {"sddmm": sddmm, "attention": attention}[posed.op](posed.csr, *posed.operands)


def task(op="spmm", features=3, threads=(1, 2), names=("scipy",)):
    posed = problem(op, features)
    return tasks.Task(op, posed.matrix, posed.features, threads, names)


def figure(ms):
    return records.Figure(ms, 0.0, of_bandwidth=1.0 / ms, of_peak=0.25 / ms)


def cell(**changes):
    fields = {
        "op": "spmm", "matrix": "tiny", "kind": "graph", "shape": (3, 3), "nnz": 3, "features": 3,
        "dtype": "float32", "threads": 2, "least_bytes": 100, "operations": 18,
        "working_bytes": 200, "cache_bytes": 1000, "bound_ms": 1.0, "skipped": {}, "wrong": {},
        "is_disturbed": False,
        "figures": {"gossamer": figure(2.0), "mkl": figure(3.0), "scipy": figure(8.0)},
    }  # fmt: skip
    return records.Cell(**{**fields, **changes})


def run_of(*results):
    read = (ReadBandwidth(1 << 16, 200.0), ReadBandwidth(1 << 28, 40.0))
    peaks = {"float32": 250.0, "float64": 125.0}
    return records.Run(
        date="2026-11-21T21:15+00:00",
        machine=machine_description.describe_machine("some machine"),
        versions={"gossamer": "0.1.0"},
        settings={},
        results=(
            *(Roofline(count, read, 40.0, peaks) for count in (1, 2)),
            *results,
            CallCost("spmv", "bound()", 1.25, 3.0),
            Startup("import gossamer", 90.0, 200.0, loads_llvm=False),
            CompileTime("spmm", 64, "imports", 200.0, 30.0, 15.0, 2.0),
            PythonShare("200 nodes, lowering", 6.0, 12.0, 1.0),
            MiniBatches("cora", 500, 1000, 0.5, 0, 20.0, 60.0),
        ),
        missing={"cora": "the file does not exist"},
        foreign=0.25,
    )
