"""Sampled dense times dense (SDDMM): a dot product for each stored element of a sparse matrix.

The nonzeros of a row are taken in groups. Each of a group has a vector of partial sums over the
features, and one transpose-reduce in registers turns all of them into one vector of results. The row
of the first operand stays in registers while the row's nonzeros pass by.
"""

from __future__ import annotations

import msgspec

from gossamer_ir.build import integer_value
from gossamer_ir.contracts import Arg, Schedule, Stats, Step, Target, Trace
from gossamer_ir.nodes import (
    CompressedVaried,
    DenseVaried,
    Module,
)
from gossamer_schedule.rules.gathers import (
    gathered_operand,
    operand_bytes,
    prefetch_rows,
    row_bytes,
)
from gossamer_schedule.rules.machine import grain, lanes_of
from gossamer_schedule.rules.patterns import axes_of, has_taken, reduced_buffer, single_iteration
from gossamer_schedule.rules.regular_reads import (
    is_dense_root,
    reads_regularly,
    selects_by_ragged,
)

SHORT_GROUP, LONG_GROUP = 4, 16
"""Nonzeros in a group: what is left of a row runs one by one."""

LONG_ROW, FEW_VECTORS = 48, 3
"""Nonzeros per row from which long groups pay, and vectors of features up to which they do: with more
of them, the rest of a row costs more than fewer shuffles save."""

UNROLLED_VECTORS = 16
"""Vectors of features whose loop is unrolled: more of them run in a loop."""

LEAST_ALIGNED = 2
"""Vectors of features from which it pays to read one more of them, none across two cache lines, where
an array begins within one (measured: 1.1 times faster; NumPy's begin 16 bytes behind a line)."""

LARGEST_ALIGNED = 8 << 20
"""Bytes of the operand up to which it does: where memory is waited for, masked reads take longer
(measured: 0.6 to 0.9 times as fast with 21 MB and more)."""

LEAST_ROW, LEAST_OPERAND = 512, 256 << 10
"""Bytes of a gathered row from which asking for it costs less than waiting, and bytes of the operand
that are more than the nearest cache holds (measured: 1.1 to 1.3 times faster, 0.9 where neighbouring
rows read the same)."""

WORK_PER_ROW = 4
"""What a row costs besides its nonzeros, in nonzeros."""


class SampledProducts(msgspec.Struct, frozen=True):
    """`out[i, j] = sum over k of ...` for each j of the fibre of row i; names of the loop stage.

    `features` is the extent of the loop `feature` (None: symbolic), `before` the text of the number
    of nonzeros before a row, `gathered` the dense operand whose rows are read by column ("": none).
    `is_regular` says that vectors over features can read the operands (`reads_regularly`), `is_padded`
    that slots of the fibre may be no elements.
    """

    block: str
    row: str
    position: str
    feature: str
    features: int | None
    dtype: str
    before: str
    gathered: str
    is_regular: bool
    is_padded: bool


def sampled_products(module: Module, target: Target, stats: Stats | None) -> Schedule | None:
    """The schedule for such a product; None where the program is another one."""
    pattern = pattern_of(module)
    if pattern is None or pattern.features == 0:
        return None
    if not pattern.is_regular or pattern.features == 1:  # one feature reduces nothing
        return Schedule(loop=(_parallel(pattern, pattern.features),))
    lanes = lanes_of(target, pattern.dtype)
    if (
        pattern.is_padded
    ):  # each slot is asked whether it is an element: groups would branch as often
        return Schedule(
            loop=(*_dot_products(pattern, lanes), _parallel(pattern, _vectors(pattern, lanes)))
        )
    group = _group(stats, _vectors(pattern, lanes))
    is_aligned = _may_be_aligned(pattern, lanes, stats=stats)
    steps = _steps(pattern, lanes, group, is_aligned=is_aligned, is_far=_is_far(pattern, stats))
    return Schedule(loop=steps)


def _group(stats: Stats | None, vectors: int | None) -> int:
    """How many nonzeros are taken together."""
    is_long = stats is not None and stats.mean_row >= LONG_ROW
    return LONG_GROUP if is_long and (vectors or 0) <= FEW_VECTORS else SHORT_GROUP


def _is_far(pattern: SampledProducts, stats: Stats | None) -> bool:
    """Whether the rows that are gathered are long and do not come from the nearest cache."""
    row = row_bytes(pattern.features, pattern.dtype)
    is_long = bool(pattern.gathered) and row >= LEAST_ROW
    return is_long and operand_bytes(stats, row) >= LEAST_OPERAND


def pattern_of(module: Module) -> SampledProducts | None:
    """The pattern of a coordinate module of one iteration; None where it has another."""
    found = single_iteration(module)
    if found is None or found[1].kinds != "SSR":
        return None
    function, iteration = found
    axes = axes_of(function, iteration)
    if len(axes) != 3:
        return None
    row, fibre, feature = axes
    if not isinstance(fibre, (CompressedVaried, DenseVaried)) or fibre.parent != row.name:
        return None
    if not is_dense_root(row) or not is_dense_root(feature):
        return None
    output = reduced_buffer(function, iteration, element=iteration.vars[:2])
    names = {f"{fibre.name}_indptr"}
    if output is None or output.axes != (row.name, fibre.name):
        return None
    if has_taken(function, iteration, names=names):
        return None
    row_var, position, feature_var = iteration.vars
    load = f"{fibre.name}_indptr[{row_var}]"
    return SampledProducts(
        block=iteration.name,
        row=row_var,
        position=position,
        feature=feature_var,
        features=integer_value(feature.length),
        dtype=output.dtype,
        before=load if fibre.indptr_dtype == "int64" else f"T.int64({load})",
        gathered=gathered_operand(function, iteration, column=position, feature=feature_var),
        is_regular=reads_regularly(function, iteration, lane=feature_var)
        and not selects_by_ragged(function, iteration),
        is_padded=isinstance(fibre, CompressedVaried) and fibre.padded,
    )


def _step(op: str, **args: Arg) -> Step:
    return Step(op, args)


def _steps(
    pattern: SampledProducts, lanes: int, group: int, *, is_aligned: bool, is_far: bool
) -> Trace:
    """Groups of nonzeros, each with its partial sums; what is gathered is asked for where it is far."""
    block, position = pattern.block, pattern.position
    grouped = _step("split", loop=position, factors=(None, group))
    steps = [grouped, *_dot_products(pattern, lanes, is_aligned=is_aligned)]
    if is_far:
        steps.append(prefetch_rows(block, pattern.gathered, loop=f"{position}_1"))
    unrolled = _step("unroll", loop=f"{position}_1")
    return (*steps, unrolled, _parallel(pattern, _vectors(pattern, lanes)))


def _may_be_aligned(pattern: SampledProducts, lanes: int, *, stats: Stats | None) -> bool:
    """Whether all rows that are gathered begin at the same place of a vector, and are of a few, near."""
    is_multiple = bool(pattern.gathered) and (pattern.features or 1) % lanes == 0
    operand = operand_bytes(stats, row_bytes(pattern.features, pattern.dtype))
    is_short = LEAST_ALIGNED <= (pattern.features or 0) // lanes < UNROLLED_VECTORS
    return is_multiple and is_short and operand <= LARGEST_ALIGNED


def _dot_products(pattern: SampledProducts, lanes: int, *, is_aligned: bool = False) -> Trace:
    """Vectors of partial sums over the features, as the rows that are gathered lie in memory, or as
    the features are numbered."""
    feature, vectors = pattern.feature, _vectors(pattern, lanes)
    early: Trace = ()
    if is_aligned and vectors is not None:
        early = (_step("align", loop=feature, buffer=pattern.gathered, lanes=lanes),)
        vectors += 1
    steps = (
        *early,
        _step("split", loop=feature, factors=(vectors, lanes)),
        _step("decompose_reduction", block=pattern.block, loop=f"{feature}_0"),
        _step("vectorize", loop=f"{feature}_1", rest="masked"),
    )
    is_short = vectors is not None and vectors <= UNROLLED_VECTORS
    return (*steps, _step("unroll", loop=f"{feature}_0")) if is_short else steps


def _vectors(pattern: SampledProducts, lanes: int) -> int | None:
    """Vectors over all features; None where their number is symbolic."""
    return None if pattern.features is None else -(-pattern.features // lanes)


def _parallel(pattern: SampledProducts, vectors: int | None) -> Step:
    weight = f"{pattern.before} + {WORK_PER_ROW} * {pattern.row}"
    return _step("parallel", loop=pattern.row, weight=weight, grain=grain(vectors or 1))
