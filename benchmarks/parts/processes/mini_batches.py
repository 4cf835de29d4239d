"""Multiplies batches of rows of a graph in this process, and prints its memory, files and times."""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from operator import matmul
from pathlib import Path

import numpy as np

import gossamer as gs
from benchmarks.matrices import load_matrix

FEATURES = 16
WARM = 100
"""Batches before memory and files are counted: all classes of the graph's batches have occurred."""
TIMED = 500
"""Batches at the end whose calls are timed, each in turns with its kernel and with SciPy's product."""


def main(graph: str, batches: int, rows: int) -> None:
    """Run the batches of a graph and print what was measured."""
    gs.set_num_threads(1)
    cache = Path(os.environ["GOSSAMER_CACHE_DIR"])
    matrix, random = load_matrix(graph).csr, np.random.default_rng(0)
    dense = np.ones((matrix.shape[1], FEATURES), np.float32)
    memory, files = 0, 0
    for number in range(batches):
        batch = matrix[np.sort(random.integers(0, matrix.shape[0], rows))]
        gs.spmm(batch, dense)
        if number + 1 == min(WARM, batches):
            memory, files = resident_bytes(), file_count(cache)
    grown, written = resident_bytes() - memory, file_count(cache) - files
    overheads, products = [], []
    for _ in range(TIMED):
        batch = matrix[np.sort(random.integers(0, matrix.shape[0], rows))]
        bound = gs.spmm.bind(batch, dense, out=np.empty((rows, FEATURES), np.float32))
        steps: tuple[Callable[[], object], ...]
        steps = (bound, partial(gs.spmm, batch, dense), partial(matmul, batch, dense))
        kernel, call, product = [seconds_of_second_call(step) for step in steps]
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


def seconds_of_second_call(step: Callable[[], object]) -> float:
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
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
