"""Index arrays that satisfy the facts of a program, and some that violate one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from gossamer_testkit.corpus.case import Case

_WRONG = {
    "a column too large": ([0, 2, 3], [0, 4, 1], "kernel.range"),
    "a negative column": ([0, 2, 3], [0, -1, 1], "kernel.range"),
    "a segment beyond the end": ([0, 2, 4], [0, 1, 1], "kernel.range"),
    "a negative segment": ([-1, 2, 3], [0, 1, 1], "kernel.range"),
    "segments that go back": ([0, 3, 2], [0, 1, 2], "kernel.monotone"),
    "segments that begin late": ([1, 2, 3], [0, 1, 1], "kernel.value"),
    "segments that end early": ([0, 2, 2], [0, 1, 1], "kernel.value"),
    "columns in no order": ([0, 2, 3], [1, 0, 1], "kernel.sorted"),
    "a column twice": ([0, 2, 3], [1, 1, 1], "kernel.sorted"),
}


def fact_cases(options: Mapping[str, Any]) -> Iterator[Case]:
    """Arguments for the row sums of a CSR matrix with 4 columns, whose facts are checked at the call."""
    dtype = options["index_dtype"]
    yield _case("three elements", [0, 2, 3], [0, 3, 1], dtype=dtype)
    yield _case("no elements", [0, 0, 0], [], dtype=dtype)
    yield _case("no rows", [0], [], dtype=dtype)
    for name, (indptr, indices, code) in _WRONG.items():
        wrong = "indices" if "column" in name else "indptr"
        yield _case(name, indptr, indices, dtype=dtype, raises=code, names=wrong)


def _case(
    name: str,
    indptr: list[int],
    indices: list[int],
    *,
    dtype: str,
    raises: str = "",
    names: str = "",
) -> Case:
    values = {
        "a": np.arange(1, len(indices) + 1, dtype=np.float32),
        "y": np.full(len(indptr) - 1, 77, np.float32),
        "indptr": np.array(indptr, dtype),
        "indices": np.array(indices, dtype),
        "m": len(indptr) - 1,
        "n": 4,
        "nnz": len(indices),
    }
    return Case(name, values, raises=raises, names=names)
