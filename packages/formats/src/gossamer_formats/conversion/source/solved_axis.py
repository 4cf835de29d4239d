"""Axes without a loop of their own: their coordinates follow from those of a logical dimension."""

from __future__ import annotations

import numpy as np

from gossamer_formats.conversion.kernels.shared_arguments import SharedArguments
from gossamer_formats.conversion.kernels.statements import compare, let, when
from gossamer_formats.conversion.maps.inverse_map import logical_variable
from gossamer_formats.conversion.recording.recorded_storage import RecordedStorage
from gossamer_formats.conversion.source.loop_order import SolvedAxis, solved_axis
from gossamer_formats.conversion.source.map_results import in_kernel
from gossamer_formats.conversion.source.source_axes import SourceAxes, width_in
from gossamer_formats.storage import Array, axes_by_name, evaluate
from gossamer_ir.core.build import ZERO, index_var, sub

MAX_SKIPPED = 2
"""The most iterations of a loop over a logical dimension for each one of a loop over the axis that is solved:
a matrix with few columns may have very many rows."""


def ascending_axis(
    arguments: SharedArguments, storage: RecordedStorage, layout: tuple[tuple[str, int], ...]
) -> SolvedAxis | None:
    """Return the axis that is solved for, so that the elements are sorted; None if they would not be."""
    solved = solved_axis(storage.description, layout)
    if solved is None:
        return None
    length = evaluate(axes_by_name(storage.description)[solved.axis].length, storage.sizes)
    if storage.shape[solved.dimension] > MAX_SKIPPED * length:
        return None
    array = next(each for each in storage.description.index_arrays if each.name == solved.array)
    contents = storage.arrays[array.handle or array.name]
    return solved if arguments.recorder.decide(_ascends, contents) else None


def _ascends(contents: Array) -> bool:
    # Takes a third of the time of `all` for a few diagonals.
    return not np.count_nonzero(contents[1:] <= contents[:-1])


def add_solved_axis(axes: SourceAxes, solved: SolvedAxis) -> None:
    """Add the axis whose coordinate follows from the logical one; it may be outside of the axis."""
    axis = axes.by_name[solved.axis]
    axes.counts[axis.name] = width = width_in(axes, axis)
    coordinate = index_var(f"x_{axis.name}")
    axes.slots[axis.name] = axes.coordinates[axis.name] = coordinate
    value = sub(logical_variable(solved.dimension), in_kernel(axes, solved.rest))
    axes.nest += [
        let(coordinate.name, value),
        when(compare("ge", coordinate, ZERO), []),
        when(compare("lt", coordinate, width.expr), []),
    ]
    axes.visits_all = False
