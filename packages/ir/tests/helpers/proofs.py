"""Checks small statements exhaustively in plain Python: does the conclusion hold whenever the premises do?

Statements are script texts, which Python evaluates with unbounded integers. A case gives each size a value,
and a loop variable each value of its range; index arrays are all small arrays that satisfy `FACTS`. Cases
with an access out of bounds or a division by zero are skipped.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from functools import cache
from types import SimpleNamespace
from typing import Any, TypeAlias

from gossamer_ir.core.build import add, index, index_var
from gossamer_ir.nodes import HasValue, InRange, Monotone, PaddedSlots, ProductSteps, SortedSegments

SIZES = range(-2, 5)
SIZES_WITH_ARRAYS = range(-1, 4)
VSCALES = (1, 2, 3)

FACTS = (
    InRange("P", index(0), add(index_var("nnz"), index(1))),
    Monotone("P"),
    Monotone("O"),
    HasValue("O", index(0), index(0)),
    HasValue("O", index(3), index_var("nnz")),
    Monotone("S"),
    ProductSteps("S", "P", "O"),
    InRange("Q", index(0), index_var("n")),
    SortedSegments("Q", "P", unique=True),
    InRange("D", index(0), index_var("n")),
    SortedSegments("D", "P", unique=False),
    SortedSegments("R", None, unique=True),
    InRange("Z", index(0), add(index_var("n"), index(1))),
    SortedSegments("Z", None, unique=True),
    PaddedSlots("Z", index_var("n")),
)
"""P: offsets of fibers; O: offsets that lead from 0 to nnz; S: sums of
products of the steps of both; Q: coordinates of the fibers, unique;
D: with duplicates; R: rows of unique coordinates; Z: padded rows. W (int32), B (uint8) and V (int64)
hold anything."""

ARRAYS = ("P", "O", "S", "Q", "D", "R", "Z", "W", "B", "V")
Premises: TypeAlias = tuple[Any, ...]


class OutOfBounds(Exception):
    """An access that a valid program does not make."""


class Array:
    """Values that are read at exact positions only, without NumPy's negative indices."""

    def __init__(self, values: list[Any]) -> None:
        self.values = values

    def __getitem__(self, at: Any) -> int:
        *outer, last = at if isinstance(at, tuple) else (at,)
        row = self.values
        for position in (*outer, last):
            if not 0 <= position < len(row):
                raise OutOfBounds
            row = row[position]
        return row


def _search(kind: str, array: Array, *, begin: int, end: int, value: int) -> int:
    window = [array[at] for at in range(begin, end)]
    if kind == "exact":
        return begin + window.index(value) if value in window else -1
    return begin + (bisect_left if kind == "lower" else bisect_right)(window, value)


def _language(vscale: int) -> SimpleNamespace:
    return SimpleNamespace(
        int64=int, min=min, max=max, search=_search, vscale=lambda: vscale,
        Select=lambda condition, yes, no: yes if condition else no,
        if_then_else=lambda condition, yes, no: yes if condition else no,
    )  # fmt: skip


@cache
def worlds() -> tuple[dict[str, Any], ...]:
    """Small index arrays that have all facts, each with its sizes `n` and `nnz`."""
    drawn = []
    for nnz, n in itertools.product(range(4), range(1, 4)):
        for offsets in itertools.combinations_with_replacement(range(nnz + 1), 4):
            fibers = list(itertools.pairwise(offsets))
            unique = list(_fibers(fibers, nnz, n, unique=True))
            sorted_ = list(_fibers(fibers, nnz, n, unique=False))
            for number, coordinates in enumerate(unique[:2] + unique[-1:]):
                drawn.append(
                    {
                        "n": n, "nnz": nnz, "P": Array(list(offsets)),
                        "O": Array([0, *offsets[1:3], nnz]), "S": Array(_products(offsets, nnz)),
                        "Q": Array(coordinates),
                        "D": Array(sorted_[number * (len(sorted_) - 1) // 2]),
                        "R": Array([[0, 1, 3], [1, 2, 3]]), "Z": Array([[0, n, n], [n, n, n]]),
                        "W": Array([3, -1, 0, 2]), "B": Array([255, 0, 1]), "V": Array([1, -2, 9]),
                    }
                )  # fmt: skip
    return tuple(drawn)


def _products(offsets: tuple[int, ...], nnz: int) -> list[int]:
    steps = zip(
        itertools.pairwise(offsets), itertools.pairwise((0, *offsets[1:3], nnz)), strict=True
    )
    return [*itertools.accumulate(((b - a) * (d - c) for (a, b), (c, d) in steps), initial=7)]


def _fibers(
    fibers: list[tuple[int, int]], nnz: int, n: int, *, unique: bool
) -> Iterator[list[int]]:
    """All coordinates of `nnz` positions that are sorted in each fiber."""
    chosen = itertools.combinations if unique else itertools.combinations_with_replacement
    parts = [list(chosen(range(n), end - begin)) for begin, end in fibers]
    for choice in itertools.product(*parts):
        coordinates = [n - 1] * nnz
        for (begin, end), values in zip(fibers, choice, strict=True):
            coordinates[begin:end] = values
        yield coordinates


class Statement:
    """The premises in order (a range of a variable, or a condition), and the claim."""

    def __init__(self, premises: Premises, claim: str) -> None:
        self.premises = [
            part if isinstance(part, str) else (part[0], *map(_compiled, part[1:]))
            for part in premises
        ]
        self.premises = [
            _compiled(part) if isinstance(part, str) else part for part in self.premises
        ]
        self.claim = _compiled(claim)
        codes = [self.claim]
        for part in self.premises:
            codes += part[1:] if isinstance(part, tuple) else [part]
        names = dict.fromkeys(name for code in codes for name in code.co_names)
        bound = {part[0] for part in self.premises if isinstance(part, tuple)}
        self.arrays = [name for name in names if name in ARRAYS]
        self.has_vscale = "vscale" in names
        sized = {"n", "nnz"} if self.arrays else set()
        self.free = [name for name in names if len(name) == 1 or name == "nnz"]
        self.free = [
            name for name in self.free if name not in bound | sized and name not in (*ARRAYS, "T")
        ]

    def counterexample(self) -> dict[str, Any] | None:
        """A case in which the premises hold and the claim does not."""
        return next((case for case, holds in self.cases() if not holds), None)

    def cases(self) -> Iterator[tuple[dict[str, Any], bool]]:
        """Every small case in which the premises hold, and whether the claim does."""
        sizes = SIZES_WITH_ARRAYS if self.arrays else SIZES
        for world in worlds() if self.arrays else ({},):
            for vscale in VSCALES if self.has_vscale else (1,):
                for values in itertools.product(sizes, repeat=len(self.free)):
                    case = dict(zip(self.free, values, strict=True))
                    yield from self._points({"T": _language(vscale), **world, **case}, 0)

    def _points(self, case: dict[str, Any], at: int) -> Iterator[tuple[dict[str, Any], bool]]:
        try:
            if at == len(self.premises):
                holds = eval(self.claim, {}, case)
                yield {name: case[name] for name in case if name not in (*ARRAYS, "T")}, bool(holds)
                return
            part = self.premises[at]
            if not isinstance(part, tuple):
                if eval(part, {}, case):
                    yield from self._points(case, at + 1)
                return
            name, start, extent = part
            begin, count = eval(start, {}, case), eval(extent, {}, case)
        except (OutOfBounds, ZeroDivisionError):
            return
        for value in range(begin, begin + count):
            yield from self._points({**case, name: value}, at + 1)


def _compiled(text: str) -> Any:
    return compile(text, text, "eval")


def random_premises(rng: Any) -> Premises:
    """Random premises about few variables, so that every small case can be checked."""
    ranges = [
        ("i", rng.choice(("0", "0", "-1", "2")), rng.choice(("m", "4", "m - 1", "(m + 1) // 2"))),
        ("j", rng.choice(("0", "i")), rng.choice(_EXTENTS)),
    ]
    conditions = [
        f"{_random_sum(rng)} {rng.choice(_COMPARED)} {_random_sum(rng)}"
        for _ in range(rng.randrange(3))
    ]
    return (*ranges[: rng.randrange(3)], *conditions)


def random_expr(rng: Any) -> str:
    """An operand of such sums, or the sum or difference of two: simple enough for proofs to be frequent."""
    first = rng.choice(_ATOMS)
    return first if rng.random() < 0.4 else f"{first} {rng.choice('+-')} {rng.choice(_ATOMS)}"


_COMPARED = ("<", "<=", ">", ">=", "==", "!=")
_EXTENTS = ("n", "i", "m", "T.min(m, n)", "T.int64(P[i + 1]) - T.int64(P[i])")
_ATOMS = (
    "i", "j", "m", "n", "i * n", "i * j", "i // 2", "j % 3", "(i * n + j) // n", "(i - j) // -2",
    "(i + j) % n", "T.min(i, j)", "T.max(j, n)", "T.Select(i < j, i, n - j)", "(i * 3 + j) // 3",
    "T.int64(P[i])", "T.int64(P[i + 1])", "T.int64(P[j])", "T.int64(Q[T.int64(P[i]) + j])",
    "T.int64(Q[i])", "T.int64(Q[j])", "T.int64(D[j])", "i // n", "j % n", "(i >> 1)", "(j & 3)",
    "i * i", "(m - i) * (n - j)", "T.int64(R[0, i])", "T.int64(R[0, j])",
)  # fmt: skip


def _random_sum(rng: Any) -> str:
    terms = [
        f"{rng.choice(('', '', '2 * ', '-1 * ', '-3 * '))}{rng.choice(_ATOMS)}"
        for _ in range(rng.randrange(1, 4))
    ]
    return " + ".join((*terms, str(rng.randrange(-2, 4))))
