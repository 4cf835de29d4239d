"""Random axes of the position stage with index arrays, and sparse buffers over them."""

from __future__ import annotations

import numpy as np

from tests.fuzzing.lowered.programs.declarations import Declarations
from tests.fuzzing.lowered.programs.scope import Drawn

FIBER = "(T.int64(J_indptr[{0} + 1]) - T.int64(J_indptr[{0}]))"
"""The number of positions in the fiber of each row."""
BOUND = 0.95
"""The share of index arrays that programs read."""


def draw_forest(declared: Declarations) -> None:
    """Draws rows `I`, a varied axis `J` below them, an axis with slots `L`, and a dense axis `K`."""
    rng, lines, sizes = declared.rng, declared.lines, declared.sizes
    rows, width = int(sizes["n"]), rng.choice((1, 2, 3))
    counts = [rng.choice((0, 1, 2, 3)) for _ in range(rows)]
    indptr = np.array([0, *np.cumsum(counts)], np.int32)
    sizes["nnz"] = int(indptr[-1])
    declared.arrays["indptr"] = indptr
    declared.params.append("indptr")
    lines.append("I = T.sp.dense_fixed(n)")
    lines.append("K = T.sp.dense_fixed(m)")
    is_compressed = rng.random() < 0.6
    if is_compressed:
        columns = [sorted(rng.sample(range(8), count)) for count in counts]
        declared.arrays["indices"] = np.array([at for row in columns for at in row], np.int32)
        declared.params.append("indices")
        lines.append('J = T.sp.compressed_varied(I, (8, nnz), (indptr, indices), "int32")')
    else:
        lines.append('J = T.sp.dense_varied(I, (8, nnz), indptr, "int32")')
    has_slots = rng.random() < 0.5
    if has_slots:
        slots = [sorted(rng.sample(range(8), width)) for _ in range(rows)]
        declared.arrays["slots"] = np.array(slots, np.int32).reshape(rows, width)
        declared.params.append("slots")
        lines.append(f'L = T.sp.compressed_fixed(I, (8, {width}), slots, "int32", padded=False)')
    if rng.random() < BOUND:
        lines.append('J_indptr = T.sp.match_buffer(indptr, (I,), "int32", extra_storage=1)')
        fiber = FIBER
        declared.scope.buffers.append(Drawn("J_indptr", "int32", ("n + 1",), "offsets", True))
    else:
        fiber = "T.int64(3)"
    if is_compressed and rng.random() < BOUND:
        lines.append('J_indices = T.sp.match_buffer(indices, (I, J), "int32")')
        declared.scope.buffers.append(Drawn("J_indices", "int32", ("n", fiber), "indices", True))
    if has_slots and rng.random() < BOUND:
        lines.append('L_indices = T.sp.match_buffer(slots, (I, L), "int32")')
        slot = ("n", f"T.int64({width})")
        declared.scope.buffers.append(Drawn("L_indices", "int32", slot, "indices", True))
    _declare(declared, "A", "I, J", ("n", fiber), int(indptr[-1]), "input")
    _declare(declared, "B", "I, J", ("n", fiber), int(indptr[-1]), "value")
    _declare(declared, "D", "I, K", ("n", "m"), rows * int(sizes["m"]), "value")
    if has_slots:
        _declare(declared, "G", "I, L", ("n", f"T.int64({width})"), rows * width, "value")
    if rng.random() < 0.4:
        count = int(indptr[-1]) * int(sizes["m"])
        _declare(declared, "H", "I, J, K", ("n", fiber, "m"), count, "value")


def _declare(
    declared: Declarations, name: str, axes: str, sizes: tuple[str, ...], count: int, role: str
) -> None:
    rng = declared.rng
    dtype = rng.choice(("float32", "int32"))
    fill = rng.choice(("", "", ", default=2.0" if dtype == "float32" else ", default=2"))
    handle = f"{name.lower()}_"
    declared.lines.append(
        f'{name} = T.sp.match_buffer({handle}, ({axes}), "{dtype}"{fill if role == "input" else ""})'
    )
    values = np.array([rng.randint(-3, 3) for _ in range(count)], dtype)
    declared.declare(Drawn(name, dtype, sizes, role, True), values, handle=handle)
