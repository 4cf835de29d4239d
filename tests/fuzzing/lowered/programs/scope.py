"""The state while a program is drawn: variables and buffers in scope, and how careful the program is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Literal, TypeAlias, TypeVar

T = TypeVar("T")

Role: TypeAlias = Literal[
    "input", "value", "index", "known", "cell", "extreme", "sorted", "fuel", "offsets", "indices"
]
"""The purpose of a buffer. Programs write small numbers to `index` buffers and `cell`s, any to those that are
`extreme`, and to no other buffers but those of values; facts are declared about buffers that are `known`."""

EXTREMES = (
    2**62, -(2**63), 2**63 - 1, -1, 2**63 - 4, 2**31 - 1, 2**31, -(2**31), 2**32, 2**61, -(2**62),
)  # fmt: skip
"""Integers whose sums and products wrap around."""


@dataclass(frozen=True)
class Drawn:
    """A buffer with the text of each size, in which `{0}`, `{1}` stand for the indices before."""

    name: str
    dtype: str
    sizes: tuple[str, ...]
    role: Role
    is_sparse: bool = False

    @property
    def is_integer(self) -> bool:
        return "int" in self.dtype

    @property
    def is_written(self) -> bool:
        """True if programs may store to the buffer."""
        return self.role in ("value", "index", "cell", "extreme")


@dataclass(frozen=True)
class Variable:
    """An int64 variable; its values usually lie below `below`."""

    name: str
    below: str


@dataclass(frozen=True)
class DrawnReducer:
    """A declared reducer: the dtypes of its components."""

    name: str
    dtypes: tuple[str, ...]


@dataclass
class Scope:
    """The stage, the names in scope and probabilities: `careless` for an index without a check, `wild` for an
    extreme number. `own` is the variable of the enclosing parallel or vectorized loop."""

    rng: Random
    stage: str
    careless: float = 0.0
    wild: float = 0.02
    vars: list[Variable] = field(default_factory=list)
    floats: list[tuple[str, str]] = field(default_factory=list)
    buffers: list[Drawn] = field(default_factory=list)
    scalars: list[str] = field(default_factory=list)
    reducers: list[DrawnReducer] = field(default_factory=list)
    own: str | None = None
    shared: frozenset[str] = frozenset()
    private: frozenset[str] = frozenset()
    in_block: bool = False
    names: int = 0

    def fresh(self, stem: str) -> str:
        """A new name."""
        self.names += 1
        return f"{stem}{self.names}"

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def choose(self, options: Sequence[T]) -> T:
        return self.rng.choice(options)

    def weighted(self, options: dict[T, int]) -> T:
        """One of the items, with a probability in proportion to its weight."""
        (option,) = self.rng.choices([*options], [*options.values()])
        return option

    def having(self, *roles: Role, dtype: str | None = None) -> list[Drawn]:
        """The readable buffers of some role."""
        return [
            buffer
            for buffer in self.buffers
            if buffer.role in roles and dtype in (None, buffer.dtype) and self.is_readable(buffer)
        ]

    def is_readable(self, buffer: Drawn) -> bool:
        """True if the buffer is readable: in a parallel or vectorized loop, buffers that other iterations
        write are not."""
        return buffer.name not in self.shared

    def writable(self, *roles: Role) -> list[Drawn]:
        """The buffers of some role that may be stored to."""
        candidates = [item for item in self.buffers if item.role in roles]
        if self.own is None:
            return candidates
        return [
            item for item in candidates if item.name in self.private or item.name in self.shared
        ]

    @contextmanager
    def inside(self) -> Iterator[None]:
        """A context for a body, at whose end its declarations leave the scope."""
        before = [*self.vars], [*self.floats], [*self.buffers]
        yield
        self.vars, self.floats, self.buffers = before
