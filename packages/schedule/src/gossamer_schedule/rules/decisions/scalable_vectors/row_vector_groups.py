"""Rows in groups of scalable vectors, where rows are long enough.

A vector with a mask takes three instructions for its mask and the loop. A whole group of vectors takes three
for all of them, but each row pays for the test whether there is a group. How many vectors a row fills is
known at run time only, as the length of vectors is, so there may be two versions of the loop over rows.
"""

from __future__ import annotations

import msgspec

from gossamer_ir.core.dtypes import VSCALE_UNIT_BITS
from gossamer_machine.machine import Machine
from gossamer_schedule.rules.patterns.row_reduction import RowReduction
from gossamer_schedule.rules.steps.trace_builder import TraceBuilder

GROUP_VECTORS = 3
"""Vectors of a group. All add to one vector of partial sums: a gather takes longer than an addition.

Counted for SpMV with 64 elements in a row at 128, 256 and 512 bits: 97, 57 and 36 instructions for a row in
groups, 94, 57 and 38 in groups of 4, 104, 60 and 38 in groups of 2, and 123, 67 and 39 vector by vector. So
groups pay if a row fills one."""

MAX_UNITS = 16
"""The longest vectors of Arm SVE, in units of vscale. Versions for longer ones are not worth their code."""


class RowVectorGroups(msgspec.Struct, frozen=True):
    """The decision whether rows run in groups of vectors, and its reason. If it is made at run time, they do
    under a `condition`, a text."""

    is_profitable: bool
    why: str
    condition: str | None = None


def row_vector_groups(
    pattern: RowReduction, machine: Machine, *, mean: float | None
) -> RowVectorGroups:
    """Decide about groups for rows of a mean number of terms (None: unknown)."""
    elements = GROUP_VECTORS * machine.unit_lanes(pattern.dtype)
    if mean is not None:
        return _for_mean(mean, elements, machine=machine)
    if pattern.sizes is None:
        return RowVectorGroups(is_profitable=False, why="the length of rows is unknown")
    rows, slots = pattern.sizes
    why = "the kernel computes the mean length of rows; it tests for a group in each row if one is full"
    return RowVectorGroups(
        is_profitable=True, why=why, condition=f"{slots} >= {rows} * ({elements} * T.vscale())"
    )


def _for_mean(mean: float, elements: int, *, machine: Machine) -> RowVectorGroups:
    units, terms = int(mean) // elements, f"rows have {mean:.3g} terms on average"
    if units < max(1, machine.min_vector_bits // VSCALE_UNIT_BITS):
        return RowVectorGroups(is_profitable=False, why=f"{terms}, which do not fill a group")
    if units >= MAX_UNITS:
        return RowVectorGroups(
            is_profitable=True, why=f"{terms}, which fill a group of the longest vectors"
        )
    why = f"{terms}, which fill a group of vectors up to {units * VSCALE_UNIT_BITS} bits"
    return RowVectorGroups(is_profitable=True, why=why, condition=f"T.vscale() <= {units}")


def versions_of_rows(
    trace: TraceBuilder, pattern: RowReduction, *, groups: RowVectorGroups
) -> tuple[tuple[RowReduction, int], ...]:
    """Return the versions of the loop over rows, each as a pattern with the vectors of a group. There are two
    if there is a condition."""
    if groups.condition is None:
        return ((pattern, GROUP_VECTORS if groups.is_profitable else 1),)
    names = (pattern.row, pattern.position, pattern.block)
    versions = trace.loop_version(
        pattern.row, condition=groups.condition, inside=(pattern.position, pattern.block)
    )
    trace.decide(
        f"a version of the rows for groups of {GROUP_VECTORS} vectors, and one without", groups.why
    )
    return tuple(
        (pattern.with_names(dict(zip(names, version, strict=True))), vectors)
        for version, vectors in zip(versions, (GROUP_VECTORS, 1), strict=True)
    )
