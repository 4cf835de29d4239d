"""Random buffers of a program: their axes and their contents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import permutations
from random import Random

import numpy as np

from gossamer_ir.core.constants import constant
from gossamer_ir.nodes import Fact, Reducer, SparseBuffer
from tests.fuzzing.oracle.arithmetic import FLOATS, INTEGERS, held, stored
from tests.fuzzing.oracle.coordinate_tables import Storage
from tests.fuzzing.programs.expressions import Term, largest
from tests.fuzzing.programs.forests import DrawnForest

DTYPES = (
    *("float32",) * 4, *("float64",) * 3, "float16", "bfloat16", "int8", "int16", "int32", "int32",
    "int64", "int64", "uint8", "uint16", "uint32", "uint64", "bool",
)  # fmt: skip
MAX_ELEMENTS = 500
"""The maximum number of elements of a buffer over sibling axes."""
SPECIAL = (np.nan, np.inf, -np.inf, -0.0)


@dataclass(frozen=True)
class Bound:
    """A variable of an iteration. `is_own`: it iterates the slots of the fiber that the variable of the
    parent axis selects. `is_free`: no fiber is selected."""

    var: str
    axis: str
    is_own: bool
    is_free: bool


@dataclass
class Buffers:
    """The buffers and values drawn so far.

    A careless program may access what does not exist, a special one holds NaN and infinities.
    `contents` says what is known of the values in each buffer, `scope` and `lets` what is bound at
    the place that is drawn. The outermost iteration around stores to the buffers
    `blocked`, and reads those in `read`; `own_elements` of the blocked ones may be read, because
    the same point stored them, and the `pending` ones when the iteration that stores them has ended.
    """

    rng: Random
    forest: DrawnForest
    is_special: bool
    is_careless: bool
    dtypes: tuple[str, ...]
    buffers: list[SparseBuffer] = field(default_factory=list)
    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    scalars: dict[str, tuple[str, int | float]] = field(default_factory=dict)
    reducers: list[Reducer] = field(default_factory=list)
    facts: list[Fact] = field(default_factory=list)
    tolerances: dict[str, float] = field(default_factory=dict)
    contents: dict[str, Term] = field(default_factory=dict)
    blocked: set[str] = field(default_factory=set)
    read: set[str] = field(default_factory=set)
    own_elements: list[Term] = field(default_factory=list)
    pending: list[Term] = field(default_factory=list)
    scope: list[Bound] = field(default_factory=list)
    lets: list[Term] = field(default_factory=list)
    count: int = 0

    def fresh(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def buffer(self, axes: tuple[str, ...], dtype: str, *, is_read: bool) -> SparseBuffer:
        """A new buffer of parameters, or one that the program allocates."""
        name = self.fresh("B")
        fill = None
        if self.chance(0.3):
            numbers = (7, 1, *((float("nan"), float("-inf")) if dtype in FLOATS and self.is_special
                               else ()))  # fmt: skip
            fill = constant(self.rng.choice(numbers), dtype)
        extra = self.rng.choice((1, 3)) if self.chance(0.02) else 0
        scope, offsets = "global", self._offsets(axes)
        if not is_read and self.chance(0.3) and not self.is_careless:
            scope = self.rng.choice(("global", "local"))
            buffer = SparseBuffer(name, axes, dtype, None, scope, fill, 0, offsets)
        else:
            buffer = SparseBuffer(name, axes, dtype, name.lower(), scope, fill, extra, offsets)
            values = self._values(Storage(buffer, self.forest.slots).size, dtype)
            self.arrays[name.lower()] = stored(values, dtype)
        bound = largest(dtype) if dtype in INTEGERS and self.chance(0.1) else 4.0
        if dtype in INTEGERS and buffer.handle and bound > 4:
            self.arrays[name.lower()] = self._any_integers(len(values), dtype)
        self.contents[name] = Term(constant(0, dtype), dtype, max(bound, 7.0 if fill else 4.0))
        self.buffers.append(buffer)
        return buffer

    def _values(self, count: int, dtype: str) -> np.ndarray:
        if dtype == "bool":
            return np.array([self.chance(0.5) for _ in range(count)], bool)
        low = 0 if dtype.startswith("u") else -4
        values = np.array([self.rng.randint(low, 4) for _ in range(count)], held(dtype))
        if self.is_special and dtype in FLOATS:
            for _ in range(self.rng.randint(0, 3) if count else 0):
                values[self.rng.randrange(count)] = self.rng.choice(SPECIAL)
        return values

    def _any_integers(self, count: int, dtype: str) -> np.ndarray:
        limits = np.iinfo(dtype)
        drawn = [self.rng.randint(int(limits.min), int(limits.max)) for _ in range(count)]
        return np.array(drawn, dtype)

    def _is_storable(self, axes: Sequence[str]) -> bool:
        """True if a buffer may have these axes. Several varied axes below one axis need offsets, and a buffer
        has offsets for one axis only."""
        return not self._branches(axes) or self._sums(axes) is not None

    def _branches(self, axes: Sequence[str]) -> dict[str, list[str]]:
        """The axes with several varied axes below them, each with these."""
        varying = {above: self._varying(above, axes) for above in axes}
        return {above: below for above, below in varying.items() if len(below) > 1}

    def _varying(self, above: str, axes: Sequence[str]) -> list[str]:
        """The children of an axis that are varied, or have a varied descendant."""
        return [
            axis
            for axis in axes
            if self.forest.slots[axis].axis.parent == above
            and (self._is_varied(axis) or self._varying(axis, axes))
        ]

    def _siblings(self) -> list[tuple[str, ...]]:
        """Axes with their ancestors and two or three varied children."""
        pairs = [
            (*self.forest.ancestors(above.name), *below)
            for above in self.forest.axes
            for count in (2, 3)
            for below in permutations(
                filter(self._is_varied, self.forest.children(above.name)), count
            )
        ]
        return [axes for axes in pairs if self._sums(axes) is not None]

    def _sums(self, axes: Sequence[str]) -> np.ndarray | None:
        """The prefix sums of the products of the fiber lengths of sibling axes; fixed axes after the last
        varied one are not counted."""
        branches = self._branches(axes)
        if len(branches) > 1:
            return None
        ((above, below),) = branches.items()
        root = self.forest.ancestors(above)[0]
        while not (self._is_varied(axes[-1]) and root in self.forest.ancestors(axes[-1])):
            axes = axes[:-1]
        sums = np.cumsum([0, *np.prod([self._counts(axis, axes) for axis in below], axis=0)])
        dtype = getattr(self.forest.slots[below[0]].axis, "indptr_dtype", "int64")
        return sums.astype(dtype) if sums[-1] <= min(np.iinfo(dtype).max, MAX_ELEMENTS) else None

    def _counts(self, axis_name: str, axes: Sequence[str]) -> np.ndarray:
        """The number of elements of a buffer in each fiber of one of its axes."""
        slots = self.forest.slots[axis_name]
        counts = np.ones(slots.size, int)
        for below in axes:
            if self.forest.slots[below].axis.parent == axis_name:
                counts = counts * self._counts(below, axes)
        return np.bincount(slots.parent_of, counts, minlength=slots.parents).astype(int)

    def _offsets(self, axes: Sequence[str]) -> str | None:
        """The parameter with the offsets that a buffer needs."""
        if not self._branches(axes):
            return None
        name = f"offsets_{''.join(axes).lower()}"
        self.arrays[name] = self._sums(axes)
        return name

    def _is_varied(self, axis_name: str) -> bool:
        return hasattr(self.forest.slots[axis_name].axis, "indptr")
