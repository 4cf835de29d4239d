"""Converts a matrix, or builds formats of a large one, in this process, and prints the times."""

from __future__ import annotations

import json
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

import gossamer as gs
from benchmarks.matrices import load_matrix
from gossamer_formats.descriptions.bsr import bsr
from gossamer_formats.descriptions.coo import coo
from gossamer_formats.descriptions.csr import csr
from gossamer_ir.nodes import FormatDescription


class BenchmarkFormat(NamedTuple):
    """A format of gossamer and its parameters, and SciPy's method and arguments for it.

    SciPy keeps the zeros that fill blocks when it converts from a format that `is_filled`, and does not sort
    the rows of CSR that it makes of it. A matrix takes part in a format that it `suits`.
    """

    format: str | FormatDescription
    parameters: Mapping[str, Any]
    method: str
    arguments: Mapping[str, Any]
    is_filled: bool = False
    suits: Callable[[Any], bool] = lambda matrix: True


DIAGONAL_SLOTS = 20
"""The most slots of DIA for each nonzero with which a matrix is stored in DIA."""


def suits_diagonals(matrix: Any) -> bool:
    """Return whether the diagonals with nonzeros have few slots."""
    coordinates = matrix.tocoo()
    diagonals = np.unique(coordinates.col - coordinates.row).size
    return bool(diagonals * matrix.shape[1] <= DIAGONAL_SLOTS * matrix.nnz)


def blocks_of(size: int) -> BenchmarkFormat:
    """Return square blocks of a size."""
    parameters = {"block_rows": size, "block_columns": size}
    arguments = {"blocksize": (size, size)}
    return BenchmarkFormat(bsr(sorted=False), parameters, "tobsr", arguments, is_filled=True)


FORMATS = {
    "csr": BenchmarkFormat("csr", {}, "tocsr", {}),
    "csc": BenchmarkFormat("csc", {}, "tocsc", {}),
    "bsr 2x2": blocks_of(2),
    "bsr 4x4": blocks_of(4),
    "dia": BenchmarkFormat("dia", {}, "todia", {}, suits=suits_diagonals),
    "coo": BenchmarkFormat(coo(sorted=False), {}, "tocoo", {}),
}
"""The formats of which each is converted to each other."""

BLOCK = 4
"""Rows and columns are filled up to a multiple of this: SciPy's blocks must divide the matrix."""

UNSORTED_CSR = FORMATS["csr"]._replace(format=csr(sorted=False))
"""The target instead of CSR for blocks."""

WARM_UP_SECONDS = 0.1
"""The time for conversions before those that are measured."""

SAMPLES = (5, 25)
"""The least and the largest number of samples of a contender."""

BUILDS: dict[str, Callable[[Any], Any]] = {
    "hyb": lambda tensor: gs.decompose(tensor, "hyb"),
    "hyb, 4 partitions": lambda tensor: gs.decompose(tensor, "hyb", c=4),
    "sell": lambda tensor: tensor.asformat("sell"),
    "padded_csr": lambda tensor: tensor.asformat("padded_csr"),
    "sr_bcrs": lambda tensor: tensor.asformat("sr_bcrs"),
    "bsr 2x2": lambda tensor: tensor.asformat("bsr", block_rows=2, block_columns=2),
    "bsr 4x4": lambda tensor: tensor.asformat("bsr", block_rows=4, block_columns=4),
    "blocked_sell 4x4": lambda tensor: tensor.asformat(
        "blocked_sell", block_rows=4, block_columns=4
    ),
}
"""The formats that are built of a large matrix in CSR."""

BUILD_NEIGHBORS, BUILD_SAMPLES = 5, 3
"""The large matrix and the builds of a format: each group of 4 rows has nonzeros in 5 groups of 4 columns, as
in a mesh with 4 unknowns in each point."""


LIBRARY_FORMATS: dict[str, Mapping[str, Any]] = {
    "csc": {},
    "coo": {},
    "csf": {},
    "dcsr": {},
    "bsr": {"block_rows": 4, "block_columns": 4},
    "sell": {},
    "padded_csr": {"width": 4},
    "ell_rows": {"width": 4},
    "row_groups": {"height": 4},
}
"""Formats that are converted on two threads, as the library has them: CSR to each, and back to CSR."""


class StoredPair(NamedTuple):
    """A matrix in a format of gossamer and in that of SciPy."""

    tensor: Any
    matrix: Any
    is_filled: bool


def time_pairs(name: str, matrix: Any, seconds_per_pair: float) -> list[dict[str, Any]]:
    """Time all pairs of formats."""
    matrix = pad_to_blocks(matrix)
    formats = {key: form for key, form in FORMATS.items() if form.suits(matrix)}
    stored = {key: stored_pair(matrix, form) for key, form in formats.items()}
    times = []
    for source, pair in stored.items():
        for target, form in formats.items():
            if source == target:
                continue
            # SciPy does not sort the rows that it makes of blocks.
            if pair.is_filled and target == "csr":
                form = UNSORTED_CSR
            what = f"{name}, {source} to {target}"
            gossamer_ms, scipy_ms = time_pair(pair, form, what, seconds_per_pair)
            times.append(
                {
                    "matrix": name,
                    "nnz": matrix.nnz,
                    "source": source,
                    "target": target,
                    "gossamer_ms": gossamer_ms,
                    "scipy_ms": scipy_ms,
                }
            )
    return times


def stored_pair(matrix: Any, form: BenchmarkFormat) -> StoredPair:
    """Return a matrix in a format of both libraries."""
    tensor = gs.from_scipy(matrix).asformat(form.format, **form.parameters)
    return StoredPair(tensor, to_scipy_format(matrix, form), form.is_filled)


def time_pair(
    source: StoredPair, target: BenchmarkFormat, what: str, seconds: float
) -> tuple[float, float]:
    """Return the milliseconds of a conversion by gossamer and by SciPy, which have the same result."""
    options: dict[str, Any] = {"zeros": "keep"} if source.is_filled else {}
    ours = partial(source.tensor.asformat, target.format, **options, **target.parameters)
    theirs = partial(convert_by_scipy, source.matrix, target)
    require_equal(ours(), theirs(), what)
    warm_up(ours)
    return interleaved_medians(ours, theirs, seconds)


def time_threads(name: str, matrix: Any, seconds_per_pair: float) -> list[dict[str, Any]]:
    """Time conversions to CSR and from it, on one thread and on two in turns."""
    csr = gs.from_scipy(matrix)
    times = []
    for other, sizes in LIBRARY_FORMATS.items():
        stored = csr.asformat(other, **sizes)
        steps = {
            ("csr", other): partial(csr.asformat, other, **sizes),
            (other, "csr"): partial(stored.asformat, "csr"),
        }
        for (source, target), step in steps.items():
            one, two = (partial(run_on_threads, count, step) for count in (1, 2))
            warm_up(one)
            warm_up(two)
            one_ms, two_ms = interleaved_medians(one, two, seconds_per_pair)
            times.append(
                {
                    "matrix": name,
                    "nnz": matrix.nnz,
                    "source": source,
                    "target": target,
                    "one_thread_ms": one_ms,
                    "two_threads_ms": two_ms,
                }
            )
    return times


def run_on_threads(count: int, step: Callable[[], object]) -> object:
    """Call a function whose kernels run on a number of threads."""
    gs.set_num_threads(count)
    return step()


def pad_to_blocks(matrix: Any) -> Any:
    """Return a matrix with empty rows and columns at the end, so that blocks divide its shape."""
    filled: Any = sparse.csr_matrix(matrix, copy=True)
    filled.resize([-(-size // BLOCK) * BLOCK for size in matrix.shape])
    return filled


def to_scipy_format(matrix: Any, form: BenchmarkFormat) -> Any:
    """Return a matrix in a format of SciPy."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sparse.SparseEfficiencyWarning)
        return getattr(matrix, form.method)(**form.arguments)


def convert_by_scipy(matrix: Any, form: BenchmarkFormat) -> Any:
    """Convert a matrix as a caller would. COO is not assumed to be free of duplicates, as of a new matrix."""
    if matrix.format == "coo":
        matrix.has_canonical_format = False
    return to_scipy_format(matrix, form)


def require_equal(ours: Any, theirs: Any, what: str) -> None:
    """Raise unless both matrices are the same."""
    actual, expected = gs.to_scipy(ours.asformat("csr")), theirs.tocsr()
    if actual.shape != expected.shape or (actual != expected).nnz:
        raise AssertionError(f"{what}: the result is wrong")


def warm_up(step: Callable[[], object]) -> None:
    """Call a function repeatedly."""
    end = time.perf_counter() + WARM_UP_SECONDS
    while time.perf_counter() < end:
        step()


def interleaved_medians(
    ours: Callable[[], object], theirs: Callable[[], object], seconds: float
) -> tuple[float, float]:
    """Return the median milliseconds of two functions that take turns, each first in half of them."""
    samples: tuple[list[float], list[float]] = ([], [])
    least, most = SAMPLES
    count = int(seconds / max(seconds_of_step(ours) + seconds_of_step(theirs), 1e-6))
    for turn in range(min(max(count, least), most)):
        for number in (0, 1) if turn % 2 else (1, 0):
            samples[number].append(seconds_of_step((ours, theirs)[number]))
    gossamer, scipy = (1e3 * statistics.median(taken) for taken in samples)
    return gossamer, scipy


def seconds_of_step(step: Callable[[], object]) -> float:
    """Return the seconds of a call; its result is freed afterwards, as by a caller."""
    start = time.perf_counter()
    result = step()
    seconds = time.perf_counter() - start
    del result
    return seconds


def time_builds(rows: int) -> list[dict[str, Any]]:
    """Time the building of formats; the first call may compile."""
    gs.set_num_threads(2)
    tensor = gs.from_scipy(mesh_of_groups(rows))
    times = []
    for name, build in BUILDS.items():
        step = partial(build, tensor)
        first = seconds_of_step(step)
        seconds = statistics.median(seconds_of_step(step) for _ in range(BUILD_SAMPLES))
        times.append(
            {"format": name, "nnz": tensor.nnz, "seconds": seconds, "first_seconds": first}
        )
    return times


def mesh_of_groups(rows: int) -> Any:
    """Return a square matrix whose rows share columns in groups of 4.

    >>> mesh_of_groups(40).nnz
    800
    """
    rng, groups = np.random.default_rng(0), rows // BLOCK
    # Distinct: sorted numbers, each with its place added.
    chosen = np.sort(rng.integers(0, groups - BUILD_NEIGHBORS, (groups, BUILD_NEIGHBORS)), axis=1)
    chosen += np.arange(BUILD_NEIGHBORS)
    columns = (chosen[:, :, None] * BLOCK + np.arange(BLOCK)).reshape(groups, -1).astype(np.int32)
    indices = np.repeat(columns, BLOCK, axis=0).reshape(-1)
    indptr = np.arange(groups * BLOCK + 1, dtype=np.int32) * columns.shape[1]
    values = rng.random(indices.size, dtype=np.float32) + np.float32(0.5)
    return sparse.csr_array((values, indices, indptr), shape=(groups * BLOCK, groups * BLOCK))


def main(command: str, *arguments: str) -> None:
    """Print what was measured as JSON."""
    if command == "pairs":
        gs.set_num_threads(1)
        name, seconds = arguments
        print(json.dumps(time_pairs(name, load_matrix(name).csr, float(seconds))))
    elif command == "threads":
        name, seconds = arguments
        print(json.dumps(time_threads(name, load_matrix(name).csr, float(seconds))))
    else:
        print(json.dumps(time_builds(int(arguments[0]))))


if __name__ == "__main__":
    main(*sys.argv[1:])
