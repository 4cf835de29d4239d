"""The pictures of lanes and masks: one loop at several vector lengths, a condition, and a row of a sparse
matrix times a vector."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

import numpy as np

from gossamer_ir.core.dtypes import VSCALE_UNIT_BITS, vscale_factor
from gossamer_support.message_texts import amount
from tools.drawing.svg import CELL, GAP, MARGIN, BoxContent, box, drawing, text

LABEL = 210
"""The width of the labels of rows."""
LINE = CELL + 10
LANES = vscale_factor("float32")
ACTIVE, OTHER, INACTIVE = "row0", "row1", "pad"

Row: TypeAlias = tuple[str, Sequence[BoxContent]]
"""The label of a row, and the lanes of its vectors, one after the other."""


def pictures_of_lanes() -> dict[str, str]:
    """Return the pictures by their names."""
    return {
        "vector_lengths": _vector_lengths(),
        "condition_masks": _condition_masks(),
        "row_in_lanes": _row_in_lanes(),
    }


def _vector_lengths(size: int = 11) -> str:
    """Return the vectors of a loop over some float32 elements, at three vector lengths."""
    parts: list[str] = []
    y: float = MARGIN
    for vscale in (1, 2, 4):
        lanes = LANES * vscale
        count = -(-size // lanes)
        title = (
            f"{VSCALE_UNIT_BITS * vscale} bits: vscale is {vscale}, {amount(count, 'iteration')}"
        )
        parts.append(text(MARGIN, y + 6, title, "title"))
        numbers = np.arange(count * lanes)
        cells = [(str(i), ACTIVE) if i < size else ("", INACTIVE) for i in numbers]
        parts += _vectors(y + 18, cells, lanes=lanes, left=MARGIN)
        y += 18 + LINE + 18
    note = "A gray lane is masked: it loads nothing and stores nothing."
    parts.append(text(MARGIN, y, note, "note"))
    width = 2 * MARGIN + 16 * CELL + GAP
    return drawing(width, y + MARGIN, f"A loop over {size} elements at three vector lengths", parts)


def _condition_masks() -> str:
    """Return the masks of both branches of a condition in the last vector of a loop."""
    x = np.array([3, -2, 5, -4, 0, 0, 0, 0])
    mask = np.arange(x.size) < 6
    holds = mask & (x < 0)
    rest = mask & ~holds
    rows: list[Row] = [
        ("X[i]", _cells(x, [(mask, ACTIVE)])),
        ("the lane mask: i < n", _marks([(mask, ACTIVE)])),
        ("X[i] < 0", _marks([(holds, OTHER)])),
        ("then: mask and condition", _marks([(holds, OTHER)])),
        ("else: mask and not condition", _marks([(rest, ACTIVE)])),
        ("Y[i]", _cells(np.where(holds, -x, 2 * x), [(holds, OTHER), (rest, ACTIVE)])),
    ]
    return _table(rows, lanes=x.size, title="Y[i] = -X[i] if X[i] < 0 else 2 * X[i], at 256 bits")


def _row_in_lanes() -> str:
    """Return the steps of a row of a sparse matrix times a vector, and its partial results."""
    columns = np.array([0, 2, 3, 7, 8, 9, 0, 0])
    a, x = np.array([1, 2, 1, 3, 2, 1, 0, 0]), np.arange(10) % 4
    mask = np.arange(columns.size) < 6
    gathered = x[columns]
    products = np.where(mask, a * gathered, 0)
    first, second = products.reshape(2, LANES)
    kept = [(np.ones(LANES, bool), ACTIVE)]
    active = [(mask, ACTIVE)]
    rows: list[Row] = [
        ("J_indices[p] (int32)", _cells(columns, active)),
        ("X[J_indices[p]]: a gather", _cells(gathered, active)),
        ("A[p]", _cells(a, active)),
        ("A[p] * X[J_indices[p]]", _cells(products, active)),
        ("partial results after each", [*_cells(first, kept), *_cells(first + second, kept)]),
    ]
    terms = " + ".join(map(str, first + second))
    total = f"After the row, the lanes are combined: {terms} = {products.sum()}."
    return _table(
        rows, lanes=LANES, title="A row of 6 elements times a vector, at 128 bits", note=total
    )


def _table(rows: Iterable[Row], *, lanes: int, title: str, note: str = "") -> str:
    parts = [text(MARGIN, MARGIN + 6, title, "title")]
    y: float = MARGIN + 22
    width: float = 0
    for label, cells in rows:
        parts.append(text(MARGIN, y + CELL / 2 + 5, label))
        parts += _vectors(y, cells, lanes=lanes, left=MARGIN + LABEL)
        width = max(width, len(cells) * CELL + (len(cells) // lanes - 1) * GAP)
        y += LINE
    if note:
        parts.append(text(MARGIN, y + 12, note, "note"))
        y += GAP
    return drawing(2 * MARGIN + LABEL + width, y + MARGIN / 2, title, parts)


def _vectors(y: float, cells: Sequence[BoxContent], *, lanes: int, left: float) -> Iterator[str]:
    """Yield the lanes of vectors with a gap between two of them."""
    for number, cell in enumerate(cells):
        yield box(left + number * CELL + number // lanes * GAP, y, cell)


def _cells(values: Iterable[object], kinds: Sequence[tuple[np.ndarray, str]]) -> list[BoxContent]:
    """Return the values in active lanes, with the color of the first mask that has the lane."""
    return _color_lanes(kinds, [str(value) for value in values].__getitem__)


def _marks(kinds: Sequence[tuple[np.ndarray, str]]) -> list[BoxContent]:
    return _color_lanes(kinds, lambda _: "1")


def _color_lanes(
    kinds: Sequence[tuple[np.ndarray, str]], content: Callable[[int], str]
) -> list[BoxContent]:
    cells = []
    for lane in range(kinds[0][0].size):
        kind = next((color for mask, color in kinds if mask[lane]), None)
        cells.append(("", INACTIVE) if kind is None else (content(lane), kind))
    return cells
