"""Index arrays that satisfy the facts of a program, and some that violate one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from gossamer_testkit.corpus.case import Case, Options

_WRONG = {
    "a column too large": ([0, 2, 3], [0, 4, 1], "kernel.range"),
    "a negative column": ([0, 2, 3], [0, -1, 1], "kernel.range"),
    "a segment beyond the end": ([0, 2, 4], [0, 1, 1], "kernel.range"),
    "a negative segment": ([-1, 2, 3], [0, 1, 1], "kernel.range"),
    "segments that go back": ([0, 3, 2], [0, 1, 2], "kernel.monotone"),
    "segments that begin late": ([1, 2, 3], [0, 1, 1], "kernel.value"),
    "segments that end early": ([0, 2, 2], [0, 1, 1], "kernel.value"),
    "columns in no order": ([0, 2, 3], [1, 0, 1], "kernel.sorted"),
    "a column twice": ([0, 2, 3], [1, 1, 1], "kernel.unique"),
}


def fact_cases(options: Options) -> Iterator[Case]:
    """Yield arguments for the row sums of a CSR matrix with 4 columns, whose facts are checked at the
    call."""
    dtype = options["index_dtype"]
    yield _case("three elements", [0, 2, 3], [0, 3, 1], dtype=dtype)
    yield _case("no elements", [0, 0, 0], [], dtype=dtype)
    yield _case("no rows", [0], [], dtype=dtype)
    for name, (indptr, indices, code) in _WRONG.items():
        wrong = "indices" if "column" in name else "indptr"
        yield _case(name, indptr, indices, dtype=dtype, raises=code, names=wrong)


def distinct_cases(options: Options) -> Iterator[Case]:
    """Yield arguments for Y[P[i]] = X[i], where no position may occur twice."""
    for name, positions, is_wrong in (
        ("nothing", [], False),
        ("one position", [0], False),
        ("a permutation", [3, 0, 4, 1, 2], False),
        ("the same position twice", [1, 0, 1], True),
        ("the same position at both ends", [2, 0, 1, 2], True),
    ):
        x = np.arange(1, len(positions) + 1, dtype=np.float32)
        values = {"x": x, "p": np.array(positions, np.int32), "y": np.full_like(x, 77), "n": x.size}
        yield Case(name, values, **_expected_error("kernel.distinct" if is_wrong else None, "p"))


def product_cases(options: Options) -> Iterator[Case]:
    """Yield arguments for sums over matrices of (left, right) rows and columns, stored one after another."""
    for name, left, right, indptr in (
        ("no matrices", [0], [0], [0]),
        ("three matrices", [0, 2, 3, 5], [0, 3, 3, 4], [0, 6, 6, 8]),
        ("offsets that begin late", [4, 6], [1, 4], [0, 6]),
        ("a matrix too long", [0, 2, 3], [0, 3, 4], [0, 7, 8]),
        ("a last matrix too short", [0, 2, 4], [0, 3, 5], [0, 6, 9]),
    ):
        offsets = {"left": left, "right": right, "indptr": indptr}
        values = {
            "a": np.arange(1, indptr[-1] + 1, dtype=np.float32),
            "y": np.full(len(indptr) - 1, 77, np.float32),
            **{key: np.array(values, np.int32) for key, values in offsets.items()},
            "m": len(indptr) - 1,
            "nnz": indptr[-1],
        }
        code = "kernel.product" if name.startswith(("a matrix", "a last")) else None
        yield Case(name, values, **_expected_error(code, "indptr"))


def relation_cases(options: Options) -> Iterator[Case]:
    """Yield inputs for row sums of a matrix that is a subset of `wide` and disjoint from `apart`."""
    none: list[list[int]] = [[], [], []]
    all_columns = [[0, 1, 2, 3]] * 3
    rows = [[0, 2], [], [3]]
    for name, mine, wide, apart, code in (
        ("all and none", rows, all_columns, none, None),
        ("the same and the others", rows, rows, [[1, 3], [0, 1], [0, 1, 2]], None),
        ("no elements", none, none, all_columns, None),
        ("no rows", [], [], [], None),
        ("an element that is missing", rows, [[0, 2], [], [0, 1, 2]], none, "kernel.subset"),
        ("an element of the next row", rows, [[0], [2], [3]], none, "kernel.subset"),
        ("an element in common", rows, rows, [[1], [1], [3]], "kernel.disjoint"),
    ):
        values: dict[str, Any] = {"m": len(mine), "n": 4}
        for suffix, matrix in (("", mine), ("_wide", wide), ("_apart", apart)):
            columns = [column for row in matrix for column in row]
            lengths = np.cumsum([0, *map(len, matrix)])
            values |= {f"indptr{suffix}": lengths.astype(np.int32), f"nnz{suffix}": len(columns)}
            values |= {f"indices{suffix}": np.array(columns, np.int32)}
        values["a"] = np.arange(1, values["nnz"] + 1, dtype=np.float32)
        values["y"] = np.full(len(mine), 77, np.float32)
        yield Case(name, values, **_expected_error(code, "indices"))


def _expected_error(code: str | None, names: str) -> dict[str, str]:
    return {} if code is None else {"raises": code, "names": names}


def _case(
    name: str,
    indptr: list[int],
    indices: list[int],
    *,
    dtype: str,
    raises: str | None = None,
    names: str | None = None,
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
