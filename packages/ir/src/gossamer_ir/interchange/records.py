"""What crosses the borders between packages besides modules: targets, schedules, signatures, stats.

All of it is closed data that msgspec encodes; none of it executes anything.
"""

from __future__ import annotations

import re
from typing import Literal, TypeAlias, Union

import msgspec

from gossamer_ir.errors import ArgumentError
from gossamer_ir.nodes import Expr, Fact

Arg: TypeAlias = Union[bool, int, str, tuple[Union[bool, int, str, None], ...], None]
"""An argument of a trace step; an expression is its script text."""

LARGEST_SIZE = 2**48
"""What a scalar in the shape of an array may be at most: more than a machine addresses, and so little
that proofs need not fear that sums of sizes wrap."""


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Frozen data without a tag."""


class Step(Record, frozen=True):
    """One application of a primitive: its name and its arguments by name."""

    op: str
    args: dict[str, Arg]


Trace: TypeAlias = tuple[Step, ...]


ScheduledStage: TypeAlias = Literal["coordinate", "position", "loop"]
"""A stage that a schedule has a trace for."""


class Schedule(Record, frozen=True):
    """One trace per stage, replayed between the lowering passes."""

    coordinate: Trace = ()
    position: Trace = ()
    loop: Trace = ()


class Decision(Record, frozen=True):
    """One thing that a rule decided, why, and the steps of one stage that do it. Without steps the
    rule decided against something."""

    what: str
    why: str
    steps: Trace = ()
    stage: ScheduledStage = "loop"


class Choice(Record, frozen=True):
    """A schedule with its reasons: the rule ("": none knows the program), the pattern that it
    recognised, and what it decided, in order.

    >>> split = Decision("tiles of 16", "a vector has 16 lanes", (Step("split", {"loop": "k"}),))
    >>> Choice("mine", "a sum", (split,)).schedule.loop == split.steps
    True
    """

    rule: str
    pattern: str
    decisions: tuple[Decision, ...] = ()

    @property
    def schedule(self) -> Schedule:
        """The steps of all decisions, in order."""
        traces: dict[str, Trace] = {}
        for found in self.decisions:
            traces[found.stage] = (*traces.get(found.stage, ()), *found.steps)
        return Schedule(**traces)


class Target(Record, frozen=True):
    """A backend's name and its options, in order.

    >>> Target.parse("generic-cpu:cpu=skylake-avx512,threads=2").option("threads")
    '2'
    """

    backend: str
    options: tuple[tuple[str, str], ...] = ()

    @staticmethod
    def parse(text: str) -> Target:
        """Reads `NAME` or `NAME:KEY=VALUE,...`; `ArgumentError` (`target.syntax`) otherwise."""
        found = _TARGET.fullmatch(text)
        if found is None:
            raise ArgumentError(
                "target.syntax",
                f"'{text}' is not a target.",
                hint="Expected NAME or NAME:KEY=VALUE,..., as in generic-cpu:threads=2.",
            )
        pairs = [item.partition("=") for item in (found[2] or "").split(",") if item]
        keys = [key for key, _, _ in pairs]
        if len(set(keys)) != len(keys):
            raise ArgumentError("target.syntax", f"'{text}' gives an option twice.")
        return Target(found[1], tuple((key, value) for key, _, value in pairs))

    @property
    def text(self) -> str:
        """The text that `parse` reads."""
        if not self.options:
            return self.backend
        return f"{self.backend}:" + ",".join(f"{key}={value}" for key, value in self.options)

    def option(self, key: str, default: str = "") -> str:
        """The value of an option, or default."""
        return dict(self.options).get(key, default)


_OPTION = r"[a-z_][a-z0-9_]*=[^,=:]+"
_TARGET = re.compile(rf"([a-z][a-z0-9-]*)(?::({_OPTION}(?:,{_OPTION})*))?")


class Stats(Record, frozen=True):
    """What rules for schedules look at in the data."""

    rows: int
    columns: int
    nnz: int
    longest_row: int
    empty_rows: int

    @property
    def mean_row(self) -> float:
        """Nonzeros per row."""
        return self.nnz / self.rows if self.rows else 0.0


class BufferParam(Record, frozen=True):
    """A pointer parameter of an entry: what an array must be to be passed for it.

    `shape` is in terms of the scalar parameters; `is_written` says whether the kernel stores to it.
    `facts` are what the kernel relies on: they are checked before a foreign array is used. Elements
    that the program does not visit keep what the caller passed.
    """

    name: str
    buffer: str
    dtype: str
    shape: tuple[Expr, ...]
    is_read: bool
    is_written: bool
    facts: tuple[Fact, ...] = ()


class ScalarParam(Record, frozen=True):
    """A scalar parameter of an entry."""

    name: str
    dtype: str


class Signature(Record, frozen=True):
    """The entry of a flat module as its callers see it, parameters in order."""

    entry: str
    buffers: tuple[BufferParam, ...]
    scalars: tuple[ScalarParam, ...]
    order: tuple[str, ...]


class Intrinsic(Record, frozen=True):
    """What an operation of a machine computes, and a template of what is emitted for it: each a script of
    one function of the loop stage, of the same parameters and buffers. The first is one nest of loops
    around one block. Only an installed plugin gives intrinsics; modules and traces name them."""

    name: str
    semantics: str
    template: str
