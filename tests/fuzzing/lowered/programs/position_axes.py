"""Random axes of the position stage with index arrays, and sparse buffers over them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tests.fuzzing.lowered.programs.scope import Drawn

if TYPE_CHECKING:
    from tests.fuzzing.lowered.programs.draw_lowered import Drawing

FIBER = "(T.int64(J_indptr[{0} + 1]) - T.int64(J_indptr[{0}]))"
"""The number of positions in the fiber of each row."""
BOUND = 0.95
"""The share of index arrays that programs read."""


def draw_forest(drawing: Drawing) -> None:
    """Draws rows `I`, a varied axis `J` below them, an axis with slots `L`, and a dense axis `K`."""
    rng, lines, sizes = drawing.rng, drawing.lines, drawing.sizes
    rows, width = int(sizes["n"]), rng.choice((1, 2, 3))
    counts = [rng.choice((0, 1, 2, 3)) for _ in range(rows)]
    indptr = np.array([0, *np.cumsum(counts)], np.int32)
    sizes["nnz"] = int(indptr[-1])
    drawing.arrays["indptr"] = indptr
    drawing.params.append("indptr")
    lines.append("I = T.sp.dense_fixed(n)")
    lines.append("K = T.sp.dense_fixed(m)")
    is_compressed = rng.random() < 0.6
    if is_compressed:
        columns = [sorted(rng.sample(range(8), count)) for count in counts]
        drawing.arrays["indices"] = np.array([at for row in columns for at in row], np.int32)
        drawing.params.append("indices")
        lines.append('J = T.sp.compressed_varied(I, (8, nnz), (indptr, indices), "int32")')
    else:
        lines.append('J = T.sp.dense_varied(I, (8, nnz), indptr, "int32")')
    has_slots = rng.random() < 0.5
    if has_slots:
        slots = [sorted(rng.sample(range(8), width)) for _ in range(rows)]
        drawing.arrays["slots"] = np.array(slots, np.int32).reshape(rows, width)
        drawing.params.append("slots")
        lines.append(f'L = T.sp.compressed_fixed(I, (8, {width}), slots, "int32", padded=False)')
    if rng.random() < BOUND:
        lines.append('J_indptr = T.sp.match_buffer(indptr, (I,), "int32", extra_storage=1)')
        fiber = FIBER
        drawing.scope.buffers.append(Drawn("J_indptr", "int32", ("n + 1",), "offsets", True))
    else:
        fiber = "T.int64(3)"
    if is_compressed and rng.random() < BOUND:
        lines.append('J_indices = T.sp.match_buffer(indices, (I, J), "int32")')
        drawing.scope.buffers.append(Drawn("J_indices", "int32", ("n", fiber), "indices", True))
    if has_slots and rng.random() < BOUND:
        lines.append('L_indices = T.sp.match_buffer(slots, (I, L), "int32")')
        slot = ("n", f"T.int64({width})")
        drawing.scope.buffers.append(Drawn("L_indices", "int32", slot, "indices", True))
    _declare(drawing, "A", "I, J", ("n", fiber), int(indptr[-1]), "input")
    _declare(drawing, "B", "I, J", ("n", fiber), int(indptr[-1]), "value")
    _declare(drawing, "D", "I, K", ("n", "m"), rows * int(sizes["m"]), "value")
    if has_slots:
        _declare(drawing, "G", "I, L", ("n", f"T.int64({width})"), rows * width, "value")
    if rng.random() < 0.4:
        count = int(indptr[-1]) * int(sizes["m"])
        _declare(drawing, "H", "I, J, K", ("n", fiber, "m"), count, "value")


def _declare(
    drawing: Drawing, name: str, axes: str, sizes: tuple[str, ...], count: int, role: str
) -> None:
    rng = drawing.rng
    dtype = rng.choice(("float32", "int32"))
    fill = rng.choice(("", "", ", default=2.0" if dtype == "float32" else ", default=2"))
    handle = f"{name.lower()}_"
    drawing.lines.append(
        f'{name} = T.sp.match_buffer({handle}, ({axes}), "{dtype}"{fill if role == "input" else ""})'
    )
    values = np.array([rng.randint(-3, 3) for _ in range(count)], dtype)
    drawing.declare(Drawn(name, dtype, sizes, role, True), values, handle=handle)
