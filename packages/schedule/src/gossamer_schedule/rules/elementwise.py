"""A value for each stored element (`B[i, j] = f(A[i, j], ...)`), in vectors and in parallel.

Where no row is asked for, rows do not matter: one loop runs over all elements, in equal parts. What
depends on the row goes through the rows, which are weighed by their elements.
"""

from __future__ import annotations

from gossamer_ir.contracts import Arg, Schedule, Stats, Step, Target, Trace
from gossamer_ir.nodes import Module
from gossamer_schedule.rules.element_patterns import Elementwise, elementwise_pattern
from gossamer_schedule.rules.machine import grain, lanes_of

SHORT_ROW = 4
"""As long as all rows may be for scalar code to be faster, where rows are gone through."""

WORK_PER_ROW = 4
"""What a row costs besides its elements, in elements."""


def elementwise(module: Module, target: Target, stats: Stats | None) -> Schedule | None:
    """The schedule for a value per stored element; None for anything else."""
    pattern = elementwise_pattern(module)
    if pattern is None:
        return None
    lanes = lanes_of(target, pattern.dtype)
    return _flat(pattern, lanes) if pattern.is_flat else _by_rows(pattern, lanes, stats)


def _flat(pattern: Elementwise, lanes: int) -> Schedule:
    fused = Step("sparse_fuse", {"iteration": pattern.iteration, "axes": pattern.axes})
    loop = f"{pattern.row}_{pattern.position}"
    parts = Step("parallel", {"loop": f"{loop}_0", "grain": grain(1)})
    return Schedule(coordinate=(fused,), loop=(*_vectors(loop, lanes), parts))


def _by_rows(pattern: Elementwise, lanes: int, stats: Stats | None) -> Schedule:
    is_short = stats is not None and stats.longest_row <= SHORT_ROW
    rows: dict[str, Arg] = {"loop": pattern.row, "grain": grain(1)}
    if pattern.before:
        rows["weight"] = f"{pattern.before} + {WORK_PER_ROW} * {pattern.row}"
    vectors = () if is_short else _vectors(pattern.position, lanes)
    return Schedule(loop=(*vectors, Step("parallel", rows)))


def _vectors(loop: str, lanes: int) -> Trace:
    return (
        Step("split", {"loop": loop, "factors": (None, lanes)}),
        Step("vectorize", {"loop": f"{loop}_1"}),
    )
