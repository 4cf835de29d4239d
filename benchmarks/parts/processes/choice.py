"""Times the operators with a matrix in all formats in this process, and prints the times."""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np

import gossamer as gs
from benchmarks.gossamer_operators import takes_vectors
from benchmarks.harness.rounds import rotate_names
from benchmarks.matrices import load_matrix
from benchmarks.operator_case import OPERAND_OFFSET, aligned_copy
from gossamer.operator_calls.prepared_formats.chosen_format import PreparedMatrix, in_format
from gossamer.operators import operator_named
from gossamer_formats import SparseTensor
from gossamer_support.arrays import Array
from gossamer_tune import Estimate, MatrixProperties, properties_of
from gossamer_tune.model.vector_products.sliced_diagonals_times_vector import DIAGONAL_HEIGHT

CHOICE_CALLS = 10**9
"""Calls for which any conversion pays."""

ROUNDS, SAMPLE_SECONDS = 9, 0.004
"""The rounds, in each of which every format has a sample, and the least duration of one."""

MIN_FILL = 0.2
"""Blocks with fewer elements than this fraction of their slots are left out, since they take memory only."""

MAX_BYTES = 500 * 10**6
"""Cases with larger dense operands are left out."""

MIN_IN_TILE = 1.0
"""Tiles in which a row has fewer elements than this on average are left out: nearly all of their time is
spent on rows without an element."""

MAX_FRESH = 0.5
"""Groups of several rows are left out if a larger fraction of the elements is the first one of its column
among 8 neighboring rows: most slots would be filled up with zeros."""

TILE_COLUMNS, SLICE_HEIGHTS, GROUP_HEIGHTS = (64, 128, 256, 512), (8, 16, 32), (2, 3, 4, 6)
"""The parameters of `tiled_csr`, of `sell`, and of `row_groups` with several rows that are measured."""


Clock: TypeAlias = Callable[[], float]


class ProductCase(NamedTuple):
    """An operator, the number of features (1: a vector), a dtype, and a number of threads."""

    op: str
    features: int
    dtype: str
    threads: int


def candidates_of(matrix: MatrixProperties, op: str) -> Iterator[Estimate]:
    """Yield the formats in which the library computes an operator, whatever the model thinks of them."""
    yield candidate("csr")
    yield candidate("hyb", c=1)
    yield from _vector_formats(matrix) if takes_vectors(op) else _matrix_formats(matrix)
    for size in _filled_blocks(matrix):
        if not matrix.rows % size and not matrix.columns % size:
            yield candidate("bsr", block_rows=size, block_columns=size)


def _vector_formats(matrix: MatrixProperties) -> Iterator[Estimate]:
    yield from (candidate("sell", height=height) for height in SLICE_HEIGHTS)
    if matrix.diagonal_fill >= MIN_FILL:
        yield candidate("sliced_dia", height=DIAGONAL_HEIGHT)
    for size in _filled_blocks(matrix):
        if not matrix.columns % size:
            yield candidate(
                "blocked_sell", block_rows=size, block_columns=size, height=SLICE_HEIGHTS[0]
            )


def _matrix_formats(matrix: MatrixProperties) -> Iterator[Estimate]:
    if matrix.rows == matrix.columns:
        yield candidate("row_groups", height=1)._replace(is_ordered=True)
    if matrix.near_groups.fresh <= MAX_FRESH:
        yield from (candidate("row_groups", height=height) for height in GROUP_HEIGHTS)
    for columns in TILE_COLUMNS:
        in_tile = matrix.lengths.mean * columns / max(matrix.columns, 1)
        if 2 * columns <= matrix.columns and in_tile >= MIN_IN_TILE:
            yield candidate("tiled_csr", tile_columns=columns)


def _filled_blocks(matrix: MatrixProperties) -> Iterator[int]:
    """Yield the sizes of square blocks that are filled well enough."""
    return (size for size, fill in matrix.block_fill.items() if fill >= MIN_FILL)


def candidate(format_name: str, **parameters: int) -> Estimate:
    """Return a format without an estimate.

    >>> candidate("hyb", c=1).text
    'hyb (c=1)'
    """
    return Estimate(format_name, parameters, 0.0, 0.0, "")


class StoredFormats:
    """A matrix in all formats, each converted once."""

    def __init__(self, matrix: SparseTensor) -> None:
        self.matrix = matrix
        self.by_text: dict[str, PreparedMatrix] = {}

    def prepared_matrix(self, estimate: Estimate) -> PreparedMatrix:
        """Return the matrix in the format of an estimate."""
        if estimate.text not in self.by_text:
            self.by_text[estimate.text] = in_format(self.matrix, estimate)
        return self.by_text[estimate.text]


def time_case(formats: StoredFormats, case: ProductCase) -> dict[str, Any]:
    """Time the calls of a case with the matrix in all formats, as the fields of a `ChoiceTime`."""
    matrix = formats.matrix
    gs.set_num_threads(case.threads)
    features = None if takes_vectors(case.op) else case.features
    choice = gs.explain(gs.prepare(matrix, case.op, features=features, calls=CHOICE_CALLS))
    rows, columns = matrix.shape
    properties = properties_of((rows, columns), matrix.arrays["indptr"], matrix.arrays["indices"])
    candidates = {one.text: one for one in (*candidates_of(properties, case.op), choice.chosen)}
    dense, out = operands_of(matrix, case)
    operator = operator_named(case.op)
    calls = {
        text: partial(operator, formats.prepared_matrix(one), dense, out=out)
        for text, one in candidates.items()
    }
    return {
        "op": case.op,
        "features": case.features,
        "dtype": case.dtype,
        "threads": case.threads,
        "chosen": choice.chosen.text,
        "expected_cycles": {one.text: one.cycles for one in choice.estimates},
        "times_ms": milliseconds_in_turns(calls, clock_of(case.threads)),
    }


def operands_of(matrix: SparseTensor, case: ProductCase) -> tuple[Array, Array]:
    """Return the dense operand and the output of a case."""
    rows, columns = matrix.shape
    width = () if takes_vectors(case.op) else (case.features,)
    dense = np.random.default_rng(0).random((columns, *width)).astype(case.dtype)
    out = np.zeros((rows, *width), case.dtype)
    return aligned_copy(dense, offset=OPERAND_OFFSET), aligned_copy(out, offset=0)


def clock_of(threads: int) -> Clock:
    """Return the clock for a number of threads: one thread computes in the calling thread, whose time does
    not include that of other processes."""
    return time.thread_time if threads == 1 else time.perf_counter


def milliseconds_in_turns(calls: dict[str, partial[Array]], clock: Clock) -> dict[str, float]:
    """Return the typical time of each call over rounds in which calls take turns."""
    counts = {name: calls_to_fill_sample(call, clock) for name, call in calls.items()}
    rounds = []
    for number in range(ROUNDS):
        order = rotate_names(list(calls), number)
        seconds = {name: timed_seconds(calls[name], counts[name], clock) for name in order}
        rounds.append(seconds)
    typical = typical_seconds(rounds)
    return {name: float(f"{1e3 * typical[name]:.4g}") for name in calls}


def typical_seconds(rounds: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the typical time of each call: the median of its times in proportion to those of the round,
    times the median of rounds.

    The clock of a shared machine may change by half from round to round. That changes all times of a round,
    and would change the ratios of medians or of least times.

    >>> typical_seconds([{"a": 1.0, "b": 4.0}, {"a": 2.0, "b": 8.0}, {"a": 2.0, "b": 2.0}])
    {'a': 1.0, 'b': 4.0}
    """
    means = [statistics.geometric_mean(one.values()) for one in rounds]
    typical = statistics.median(means)
    return {
        name: typical
        * statistics.median(one[name] / mean for one, mean in zip(rounds, means, strict=True))
        for name in rounds[0]
    }


def calls_to_fill_sample(call: partial[Array], clock: Clock) -> int:
    """Return the number of calls in a sample; the first call compiles."""
    call()
    return max(1, int(SAMPLE_SECONDS / max(timed_seconds(call, 1, clock), 1e-7)))


def timed_seconds(call: partial[Array], count: int, clock: Clock) -> float:
    """Return the seconds of a call over some calls in a row."""
    begin = clock()
    for _ in range(count):
        call()
    return (clock() - begin) / count


def time_matrix(name: str, cases: Sequence[ProductCase]) -> list[dict[str, Any]]:
    """Time all cases of a matrix."""
    times = []
    for dtype in dict.fromkeys(case.dtype for case in cases):
        formats = StoredFormats(SparseTensor(load_matrix(name, dtype).csr))
        for case in cases:
            size = sum(formats.matrix.shape) * case.features * np.dtype(dtype).itemsize
            if case.dtype == dtype and size <= MAX_BYTES:
                times.append({"matrix": name, **time_case(formats, case)})
    return times


def main(name: str, cases: str) -> None:
    """Print what was measured as JSON."""
    print(json.dumps(time_matrix(name, [ProductCase(*case) for case in json.loads(cases)])))


if __name__ == "__main__":
    main(*sys.argv[1:])
