"""Many different matrices in one process, as in training on neighborhoods of a graph.

A fresh process with an empty kernel cache multiplies the rows of randomly chosen nodes by a dense matrix,
each time as a new SciPy matrix. Measured are the growth of its resident memory, the files that it writes
after the first batches, and the duration of a call besides that of its kernel.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from operator import matmul
from pathlib import Path

import numpy as np

import gossamer as gs
from benchmarks.harness.progress import Bar
from benchmarks.matrices import available, load_matrix
from benchmarks.parts.fresh_process import run_fresh
from benchmarks.records import MiniBatches

GRAPHS = ("cora", "pubmed", "ogbn_arxiv", "power_law_170k")
USUAL = ("pubmed",)
"""Measured unless matrices are chosen."""
BATCHES, ROWS, FEATURES = 100_000, 1000, 16
WARM = 100
"""Batches before memory and files are counted: all classes of the graph's batches have occurred."""
TIMED = 500
"""Batches at the end whose calls are timed, each in turns with its kernel and with SciPy's product."""
SECONDS_PER_GRAPH = 120.0
"""Used only to estimate the duration."""


def chosen_graphs(matrices: Sequence[str] | None) -> tuple[str, ...]:
    """Return the graphs among the chosen matrices."""
    return USUAL if matrices is None else tuple(name for name in GRAPHS if name in matrices)


def estimated_seconds(graphs: Sequence[str]) -> float:
    """Return the estimated duration."""
    return SECONDS_PER_GRAPH * len(graphs)


def measure_mini_batches(graphs: Sequence[str], bar: Bar) -> tuple[MiniBatches, ...]:
    """Measure those graphs that are available."""
    measured = []
    for graph in available(graphs):
        bar.describe(f"{BATCHES:,} mini-batches of {graph}")
        measured.append(measure_graph(graph, BATCHES))
        bar.advance(SECONDS_PER_GRAPH)
    return tuple(measured)


def measure_graph(graph: str, batches: int) -> MiniBatches:
    """Measure one graph in a fresh process."""
    with tempfile.TemporaryDirectory() as cache:
        output = run_fresh(
            sys.executable,
            "-m",
            "benchmarks.parts.mini_batches",
            graph,
            str(batches),
            GOSSAMER_CACHE_DIR=cache,
        )
    return MiniBatches(graph, batches, ROWS, **json.loads(output))


# --- in the fresh process


def main(graph: str, batches: int) -> None:
    """Run the batches of a graph and print what was measured."""
    gs.set_num_threads(1)
    cache = Path(os.environ["GOSSAMER_CACHE_DIR"])
    matrix, random = load_matrix(graph).csr, np.random.default_rng(0)
    dense = np.ones((matrix.shape[1], FEATURES), np.float32)
    memory, files = 0, 0
    for number in range(batches):
        batch = matrix[np.sort(random.integers(0, matrix.shape[0], ROWS))]
        gs.spmm(batch, dense)
        if number + 1 == min(WARM, batches):
            memory, files = resident_bytes(), file_count(cache)
    grown, written = resident_bytes() - memory, file_count(cache) - files
    overheads, products = [], []
    for _ in range(TIMED):
        batch = matrix[np.sort(random.integers(0, matrix.shape[0], ROWS))]
        bound = gs.spmm.bind(batch, dense, out=np.empty((ROWS, FEATURES), np.float32))
        steps: tuple[Callable[[], object], ...]
        steps = (bound, partial(gs.spmm, batch, dense), partial(matmul, batch, dense))
        kernel, call, product = [duration(step) for step in steps]
        overheads.append(call - kernel)
        products.append(product)
    print(
        json.dumps(
            {
                "grown_mb": round(grown / 1e6, 2),
                "late_files": written,
                "overhead_us": round(1e6 * statistics.median(overheads), 1),
                "scipy_us": round(1e6 * statistics.median(products), 1),
            }
        )
    )


def duration(step: Callable[[], object]) -> float:
    """Return the seconds of the second of two calls: the first loads the caches."""
    step()
    start = time.perf_counter()
    step()
    return time.perf_counter() - start


def resident_bytes() -> int:
    """Return the resident memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def file_count(folder: Path) -> int:
    """Return the number of files below a folder."""
    return sum(path.is_file() for path in folder.rglob("*"))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
