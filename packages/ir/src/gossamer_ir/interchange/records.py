"""The data that packages exchange besides modules: targets, schedules, signatures, stats.

Records are plain data that msgspec encodes; decoding one executes no code.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, TypeAlias, Union, get_args

import msgspec

from gossamer_ir.errors import ArgumentError
from gossamer_ir.nodes import Expr, Fact, StageName

Arg: TypeAlias = Union[bool, int, str, tuple[Union[bool, int, str, None], ...], None]
"""An argument of a trace step; an expression is given as its script text."""


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The base class of records: frozen data without a tag."""


class Step(Record, frozen=True):
    """One application of a primitive: the name and the arguments by name."""

    op: str
    args: dict[str, Arg]


Trace: TypeAlias = tuple[Step, ...]


ScheduledStage: TypeAlias = Literal["coordinate", "position", "loop"]
SCHEDULED_STAGES: tuple[ScheduledStage, ...] = get_args(ScheduledStage)
"""The stages for which a schedule has a trace."""
LOWERING_PASSES: Mapping[StageName, str] = {
    "coordinate": "lower_iterations",
    "position": "lower_buffers",
    "loop": "lower_to_flat",
}
"""The pass that lowers a module of each stage to the next one."""


class Schedule(Record, frozen=True):
    """One trace per stage; each is replayed when lowering reaches its stage."""

    coordinate: Trace = ()
    position: Trace = ()
    loop: Trace = ()

    @property
    def traces(self) -> Mapping[StageName, Trace]:
        """The trace of each of the `SCHEDULED_STAGES`."""
        return {stage: getattr(self, stage) for stage in SCHEDULED_STAGES}


class Decision(Record, frozen=True):
    """One decision of a rule, the reason, and the steps of one stage that carry it out. A decision without
    steps records that the rule rejected a transformation."""

    what: str
    why: str
    steps: Trace = ()
    stage: ScheduledStage = "loop"


ChoiceValue: TypeAlias = Union[int, str]
SchedulePoint: TypeAlias = Mapping[str, ChoiceValue]
"""A point of a space of schedules: the values of choices by their names. Those that are missing have their
first values."""


class RuleChoice(Record, frozen=True):
    """A choice of a rule: its name, the value that it has in one schedule, and all values that it can have if
    the choices before it are the same. The first of these, the prior, is what the rule takes by itself."""

    name: str
    value: ChoiceValue
    values: tuple[ChoiceValue, ...]


class ScheduleReport(Record, frozen=True):
    """A schedule with its reasons: the rule (None if none matches the program), the pattern that it
    recognized, and its decisions in order. If it `replaces_conversion`, the program over a format other than
    CSR is as fast as one over CSR or faster, so that operators need not convert tensors in this format.
    With `choices`, it is one point of a `ScheduleSpace`.

    >>> split = Decision("tiles of 16", "a vector has 16 lanes", (Step("split", {"loop": "k"}),))
    >>> ScheduleReport("mine", "a sum", (split,)).schedule.loop == split.steps
    True
    """

    rule: str | None
    pattern: str
    decisions: tuple[Decision, ...] = ()
    replaces_conversion: bool = False
    choices: tuple[RuleChoice, ...] = ()

    @property
    def point(self) -> dict[str, ChoiceValue]:
        """The values of the choices by their names."""
        return {choice.name: choice.value for choice in self.choices}

    @property
    def schedule(self) -> Schedule:
        """The steps of all decisions, in order."""
        traces: dict[str, Trace] = {}
        for decision in self.decisions:
            traces[decision.stage] = (*traces.get(decision.stage, ()), *decision.steps)
        return Schedule(**traces)


class ScheduleSpace(Record, frozen=True):
    """Schedules for one program, which all compute the same: a report for each point of the choices of a
    rule, in order. The first is the prior, whose choices have their first values; it is used unless another
    one is asked for. A tuner measures the others.

    >>> unrolled, looped = (
    ...     ScheduleReport("mine", "a sum", choices=(RuleChoice("loop", value, ("unrolled", "looped")),))
    ...     for value in ("unrolled", "looped")
    ... )
    >>> space = ScheduleSpace((unrolled, looped))
    >>> space.prior.point, space.at({"loop": "looped"}) == looped
    ({'loop': 'unrolled'}, True)
    """

    reports: tuple[ScheduleReport, ...]

    @property
    def prior(self) -> ScheduleReport:
        """The report of the first point."""
        return self.reports[0]

    def at(self, point: SchedulePoint) -> ScheduleReport:
        """Return the report of the first point with these values; raise `ArgumentError` (`schedule.point`) if
        there is none."""
        for report in self.reports:
            if point.items() <= report.point.items():
                return report
        raise ArgumentError(
            "schedule.point",
            f"The space of schedules has no point with {dict(point)}.",
            hint=f"The prior is {self.prior.point}; the reports of the space have all points.",
        )


class Target(Record, frozen=True):
    """The name of a backend and its options, in order.

    >>> Target.parse("generic-cpu:cpu=skylake-avx512,threads=2").option("threads")
    '2'
    """

    backend: str
    options: tuple[tuple[str, str], ...] = ()

    @staticmethod
    def parse(text: str) -> Target:
        """Parse `NAME` or `NAME:KEY=VALUE,...`; raise `ArgumentError` (`target.syntax`) otherwise."""
        match = _TARGET.fullmatch(text)
        if match is None:
            raise ArgumentError(
                "target.syntax",
                f"'{text}' is not a target.",
                hint="Expected NAME or NAME:KEY=VALUE,..., as in generic-cpu:threads=2.",
            )
        pairs = [item.partition("=") for item in (match[2] or "").split(",") if item]
        keys = [key for key, _, _ in pairs]
        repeated = next((key for key in keys if keys.count(key) > 1), None)
        if repeated is not None:
            raise ArgumentError(
                "target.syntax",
                f"'{text}' gives the option '{repeated}' more than once.",
                hint="Give each option once.",
            )
        return Target(match[1], tuple((key, value) for key, _, value in pairs))

    @property
    def text(self) -> str:
        """The text from which `parse` returns this target."""
        if not self.options:
            return self.backend
        return f"{self.backend}:" + ",".join(f"{key}={value}" for key, value in self.options)

    def option(self, key: str, default: str = "") -> str:
        """Return the value of an option, or `default` if it is not given."""
        return dict(self.options).get(key, default)


_OPTION = r"[a-z_][a-z0-9_]*=[^,=:]+"
_TARGET = re.compile(rf"([a-z][a-z0-9-]*)(?::({_OPTION}(?:,{_OPTION})*))?")


class Stats(Record, frozen=True):
    """The properties of a sparse matrix on which schedule rules base their decisions."""

    rows: int
    columns: int
    nnz: int
    longest_row: int
    empty_rows: int
    equal_rows: int = 0
    """An estimate of the number of rows with the same columns as the row before."""

    @property
    def mean_row(self) -> float:
        """The mean number of nonzeros per row, 0.0 without rows."""
        return self.nnz / self.rows if self.rows else 0.0

    def representative(self) -> Stats:
        """Return the representative of a class of similar matrices.

        Default rules are given representatives only, so similar matrices share a schedule and its kernel.
        All numbers are rounded down: the mean row to three significant bits, the others to powers of two,
        except a longest row of at most 8. Only the presence of empty rows is kept, and whether
        rows that equal the one before are a third of all rows. A class has at least 4 rows, so that its mean
        row is exact, and a representative that of itself.

        >>> Stats(rows=1000, columns=1000, nnz=5300, longest_row=60, empty_rows=3).representative()
        Stats(rows=512, columns=512, nnz=2560, longest_row=32, empty_rows=1, equal_rows=0)
        """
        rows, columns, quarters = size_class(self.rows, self.columns, self.nnz)
        longest = self.longest_row
        if longest > 8:
            longest = 1 << longest.bit_length() - 1
        empty = min(self.empty_rows, 1)
        equal = rows // 2 if 3 * self.equal_rows >= self.rows > 0 else 0
        return Stats(rows, columns, rows * quarters // 4, longest, empty, equal)


def size_class(rows: int, columns: int, nnz: int) -> tuple[int, int, int]:
    """Return the numbers that `Stats.representative` makes of the sizes of a matrix: the rows, the columns,
    and the mean row in quarters of an element.

    >>> size_class(1000, 1000, 5300)
    (512, 512, 20)
    """
    quarters = 4 * nnz // rows if rows else 0
    if quarters > 7:
        shift = quarters.bit_length() - 3
        quarters = quarters >> shift << shift
    # 0 for 0: the shift by -1 that it would need is an error.
    min_columns = columns and 1 << columns.bit_length() - 1
    return rows and max(4, 1 << rows.bit_length() - 1), min_columns, quarters


MemorySpace: TypeAlias = Literal["host", "global"]
"""The memory of an array that is passed: that of the calling process, or the global memory of a device. The
kernel allocates memory that is shared by a thread block, or local to a thread."""


class BufferParam(Record, frozen=True):
    """A pointer parameter of an entry, and the requirements for an array that is passed for it.

    `shape` is in terms of the scalar parameters; `space` is the memory of the array. `is_written` is true if
    the kernel stores to the array; elements that the program does not visit keep the values that the caller
    passed. The kernel relies on `facts`, which are checked before an array of unknown origin is used.
    """

    name: str
    buffer: str
    dtype: str
    shape: tuple[Expr, ...]
    is_read: bool
    is_written: bool
    facts: tuple[Fact, ...] = ()
    space: MemorySpace = "host"


class ScalarParam(Record, frozen=True):
    """A scalar parameter of an entry."""

    name: str
    dtype: str


class Signature(Record, frozen=True):
    """The interface of a flat module: its entry, and the parameters, whose order is `order`.

    `scratch` is the number of bytes of memory in the space of the arrays that each call needs while it runs,
    in terms of the scalar parameters. None: the kernel allocates what it needs itself, as those of the host
    do.
    """

    entry: str
    buffers: tuple[BufferParam, ...]
    scalars: tuple[ScalarParam, ...]
    order: tuple[str, ...]
    scratch: Expr | None = None


class Intrinsic(Record, frozen=True):
    """A machine operation for tensorization.

    `semantics` is a script of what it computes, one loop nest around one block. `implementation` is a script
    of the code that replaces it. Both have one function of the loop stage, with the same parameters and
    buffers. Intrinsics come from installed plugins only; modules and traces refer to them by name.
    """

    name: str
    semantics: str
    implementation: str
