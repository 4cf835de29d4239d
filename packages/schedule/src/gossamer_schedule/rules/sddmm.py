"""Sampled dense times dense (SDDMM): a dot product for each stored element of a sparse matrix.

The nonzeros of a row are taken in groups. Each of a group has a vector of partial sums over the
features, and one transpose-reduce in registers turns all of them into one vector of results. The row
of the first operand stays in registers while the row's nonzeros pass by.
"""

from __future__ import annotations

import msgspec

from gossamer_ir.core.build import integer_value
from gossamer_ir.core.counted import counted
from gossamer_ir.interchange.records import (
    Arg,
    Decision,
    ScheduleReport,
    Stats,
    Step,
    Target,
    Trace,
)
from gossamer_ir.nodes import (
    CompressedVaried,
    DenseVaried,
    Module,
)
from gossamer_schedule.rules.cost.machine import lanes_of
from gossamer_schedule.rules.cost.parallel_rows import parallel_rows
from gossamer_schedule.rules.recognise.gathers import (
    Ahead,
    Gather,
    gathered_operand,
    megabytes,
    prefetched,
)
from gossamer_schedule.rules.recognise.regular_reads import (
    is_dense_root,
    reads_regularly,
    selects_by_ragged,
)
from gossamer_schedule.rules.recognise.row_reduction import (
    axes_of,
    has_taken,
    may_reassociate,
    reduced_buffer,
    single_iteration,
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

AHEAD = Ahead(least_row=512, least_operand=256 << 10)
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

    @property
    def text(self) -> str:
        """The pattern in words."""
        return (
            f"each stored element {self.position} of row {self.row} is a sum over the features "
            f"{self.feature}"
        )


def sddmm(
    module: Module,
    target: Target,
    stats: Stats | None,
    *,
    ahead: Ahead = AHEAD,
    short_row: float = 0.0,
) -> ScheduleReport | None:
    """The schedule for such a product; None where the program is another one. One element at a time
    also where rows have no more than `short_row` on average."""
    pattern = pattern_of(module)
    if pattern is None or pattern.features == 0:
        return None
    lanes = lanes_of(target, pattern.dtype)
    decisions = _decisions(pattern, lanes, stats, ahead=ahead, short_row=short_row)
    return ScheduleReport("sddmm", pattern.text, decisions)


def _decisions(
    pattern: SampledProducts, lanes: int, stats: Stats | None, *, ahead: Ahead, short_row: float
) -> tuple[Decision, ...]:
    if pattern.features == 1:
        scalar = Decision("one product at a time", "a single feature reduces nothing")
        return scalar, _parallel(pattern, 1)
    if not pattern.is_regular:
        why = "an operand is read, or products are combined, as vectors cannot do it"
        return Decision("one product at a time", why), _parallel(pattern, pattern.features)
    rows = _parallel(pattern, _vectors(pattern, lanes))
    if pattern.is_padded:
        why = "each slot is asked whether it is an element, and groups would branch as often"
        return Decision("one element at a time", why), _dot_products(pattern, lanes), rows
    if stats is not None and stats.mean_row <= short_row:
        why = f"rows have {stats.mean_row:.3g} elements on average; groups pay above {short_row}"
        sums = _sums(pattern, lanes, stats, ahead=ahead, loop=pattern.position)
        return Decision("one element at a time", why), *sums, rows
    return *_grouped(pattern, lanes, stats, ahead), rows


def _group(stats: Stats | None, vectors: int | None) -> tuple[int, str]:
    """How many nonzeros are taken together, and why."""
    if stats is None:
        return SHORT_GROUP, "nothing is known of the length of rows"
    is_long = stats.mean_row >= LONG_ROW
    mean = f"rows have {stats.mean_row:.3g} elements on average"
    if is_long and (vectors or 0) <= FEW_VECTORS:
        return LONG_GROUP, f"{mean}, {LONG_ROW} or more, and few features"
    if is_long:
        return (
            SHORT_GROUP,
            f"features fill more than {FEW_VECTORS} vectors, so the rest of a row costs",
        )
    return SHORT_GROUP, f"{mean}, fewer than {LONG_ROW}"


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
        and not selects_by_ragged(function, iteration)
        and may_reassociate(iteration),
        is_padded=isinstance(fibre, CompressedVaried) and fibre.padded,
    )


def _step(op: str, **args: Arg) -> Step:
    return Step(op, args)


def _grouped(
    pattern: SampledProducts, lanes: int, stats: Stats | None, ahead: Ahead
) -> tuple[Decision, ...]:
    """Groups of nonzeros, each with its partial sums."""
    group, why = _group(stats, _vectors(pattern, lanes))
    position, inner = pattern.position, f"{pattern.position}_1"
    return (
        Decision(
            f"groups of {group} elements of a row",
            f"one transpose-reduce makes the results of a group from its partial sums; {why}",
            (_step("split", loop=position, factors=(None, group)),),
        ),
        *_sums(pattern, lanes, stats, ahead=ahead, loop=inner),
        Decision(
            "the elements of a group unrolled",
            "each has a register for its partial sums, chosen when code is made",
            (_step("unroll", loop=inner),),
        ),
    )


def _sums(
    pattern: SampledProducts, lanes: int, stats: Stats | None, *, ahead: Ahead, loop: str
) -> tuple[Decision, ...]:
    """The sums of the elements of a loop; what is gathered for them is asked for where it is far."""
    gather = Gather(pattern.gathered, pattern.features, pattern.dtype, pattern.block, loop)
    alignment = _alignment(pattern, lanes, gather.operand_bytes(stats))
    return (
        alignment,
        _dot_products(pattern, lanes, more=len(alignment.steps)),
        prefetched(gather, stats, ahead),
    )


def _alignment(pattern: SampledProducts, lanes: int, size: int) -> Decision:
    """Whether vectors over features begin as the rows that are gathered lie in memory: where all do at
    the same place of a vector, and are of a few, near. `size` are the bytes of all rows."""
    vectors, rest = divmod(pattern.features or 0, lanes)
    if not pattern.gathered or rest or not LEAST_ALIGNED <= vectors < UNROLLED_VECTORS:
        why = "the rows that are gathered are not of a few whole vectors, which all begin alike"
        return Decision("vectors begin at the first feature", why)
    if size > LARGEST_ALIGNED:
        why = f"{pattern.gathered} has {megabytes(size)}, and masked reads take longer where it has more"
        return Decision(
            "vectors begin at the first feature", f"{why} than {megabytes(LARGEST_ALIGNED)}"
        )
    return Decision(
        f"vectors begin where those of {pattern.gathered} begin in memory",
        "one vector more is read, and none across two cache lines",
        (_step("align", loop=pattern.feature, buffer=pattern.gathered, lanes=lanes),),
    )


def _dot_products(pattern: SampledProducts, lanes: int, *, more: int = 0) -> Decision:
    """Vectors of partial sums over the features, so many more than hold them all."""
    feature, vectors = pattern.feature, _vectors(pattern, lanes)
    vectors = None if vectors is None else vectors + more
    steps: Trace = (
        _step("split", loop=feature, factors=(vectors, lanes)),
        _step("decompose_reduction", block=pattern.block, loop=f"{feature}_0"),
        _step("vectorize", loop=f"{feature}_1", rest="masked"),
    )
    why = "nobody knows how many vectors there are, so they run in a loop"
    if vectors is not None:
        how = "in a loop, as those are many"
        if vectors <= UNROLLED_VECTORS:
            how = "unrolled, as those are few"
            steps = (*steps, _step("unroll", loop=f"{feature}_0"))
        why = f"{pattern.features} features take {counted(vectors, 'vector')}, {how}"
    return Decision(
        f"partial sums over the features in vectors of {lanes} lanes",
        f"additions in different lanes do not wait for each other; {why}",
        steps,
    )


def _vectors(pattern: SampledProducts, lanes: int) -> int | None:
    """Vectors over all features; None where their number is symbolic."""
    return None if pattern.features is None else -(-pattern.features // lanes)


def _parallel(pattern: SampledProducts, vectors: int | None) -> Decision:
    return parallel_rows(
        pattern.row, before=pattern.before, per_row=WORK_PER_ROW, vectors=vectors or 1
    )
