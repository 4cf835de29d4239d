"""Axes without a loop of their own: their coordinates follow from those of a logical dimension."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from gossamer_formats.conversion.by_kernels.kernels.shared_arguments import SharedArguments
from gossamer_formats.conversion.by_kernels.kernels.statements import (
    compare,
    let,
    logical_and,
    when,
)
from gossamer_formats.conversion.by_kernels.recording.recorded_storage import RecordedStorage
from gossamer_formats.conversion.by_kernels.source.map_results import in_kernel
from gossamer_formats.conversion.by_kernels.source.source_loops import SourceLoopBuilder, width_in
from gossamer_formats.conversion.destination.inverse_map import logical_var, with_sizes
from gossamer_formats.description_sizes import evaluate
from gossamer_ir.analysis.axes.logical_elements import map_results, map_vars
from gossamer_ir.arith.affine import Affine, affine_of, expr_of
from gossamer_ir.core.axis_kinds import is_dense_root
from gossamer_ir.core.build import ZERO, index_var, sub
from gossamer_ir.nodes import Cast, Expr, FormatDescription, Load, Var
from gossamer_support.arrays import Array
from gossamer_support.items_by_name import items_by_name

MAX_SKIPPED = 2
"""The most iterations of a loop over a logical dimension for each one of a loop over the axis that is solved:
a matrix with few columns may have very many rows."""


class SolvedAxis(NamedTuple):
    """A dense axis whose coordinate is that of logical dimension `dimension`, less `rest`: a loop over this
    dimension can replace that over the axis.

    It is the other logical coordinate as well. It ascends with the contents of index array `array`, which the
    coordinate along axis `outer` indexes: if they ascend, the elements are sorted lexicographically by
    `dimension` and the other one.
    """

    axis: str
    outer: str
    dimension: int
    rest: Expr
    array: str


# Other expressions: nothing is concluded from them.
@lru_cache(maxsize=256)
def solved_axis(
    description: FormatDescription, layout: tuple[tuple[str, int], ...]
) -> SolvedAxis | None:
    """Return the axis of a format with two dense axes that can be solved for; None if there is none.

    >>> from gossamer_formats.descriptions.dia import dia
    >>> from gossamer_ir.script import print_expr
    >>> solved = solved_axis(dia(), (("m", 3), ("n", 4), ("diagonals", 2)))
    >>> solved.axis, solved.dimension, print_expr(solved.rest)
    ('J', 0, '0 - T.int64(OFFSETS[d])')
    """
    axes, results = items_by_name(description.axes), map_results(description)
    names = dict(zip(map_vars(description), description.buffer.axes, strict=True))
    if len(axes) != 2 or len(results) != 2 or not all(map(is_dense_root, axes.values())):
        return None
    if description.buffer.extra_storage:
        return None
    for dimension, other in ((0, results[1]), (1, results[0])):
        form = affine_of(with_sizes(results[dimension], dict(layout)))
        terms = dict(form.terms)
        if not isinstance(other, Var) or terms.pop(other, 0) != 1 or len(terms) != 1:
            continue
        ((atom, factor),) = terms.items()
        load = atom.value if isinstance(atom, Cast) else atom
        if factor > 0 or not isinstance(load, Load) or len(load.indices) != 1:
            continue
        (at,) = load.indices
        if isinstance(at, Var) and at != other and at.name in names:
            rest = expr_of(Affine(terms, form.constant))
            return SolvedAxis(names[other.name], names[at.name], dimension, rest, load.buffer)
    return None


def ascending_axis(
    arguments: SharedArguments, storage: RecordedStorage, layout: tuple[tuple[str, int], ...]
) -> SolvedAxis | None:
    """Return the axis that is solved for, so that the elements are sorted; None if they would not be."""
    solved = solved_axis(storage.description, layout)
    if solved is None:
        return None
    length = evaluate(items_by_name(storage.description.axes)[solved.axis].length, storage.sizes)
    if storage.shape[solved.dimension] > MAX_SKIPPED * length:
        return None
    array = next(
        index_array
        for index_array in storage.description.index_arrays
        if index_array.name == solved.array
    )
    contents = storage.arrays[array.handle or array.name]
    return solved if arguments.recorder.decide(_ascends, contents) else None


def _ascends(contents: Array) -> bool:
    # Takes a third of the time of `all` for a few diagonals.
    return not np.count_nonzero(contents[1:] <= contents[:-1])


def add_solved_axis(builder: SourceLoopBuilder, solved: SolvedAxis) -> None:
    """Add the axis whose coordinate follows from the logical one; it may be outside of the axis."""
    axis = builder.by_name[solved.axis]
    builder.counts[axis.name] = width = width_in(builder, axis)
    coordinate = index_var(f"x_{axis.name}")
    builder.slots[axis.name] = builder.coordinates[axis.name] = coordinate
    value = sub(logical_var(solved.dimension), in_kernel(builder, solved.rest))
    builder.nest += [
        let(coordinate.name, value),
        when(
            logical_and(compare("ge", coordinate, ZERO), compare("lt", coordinate, width.expr)), []
        ),
    ]
    builder.visits_all = False
