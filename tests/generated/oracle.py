"""What statements mean: NumPy over all elements at once, in float64 or int64."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tests.generated.expressions import Env, Value

REDUCERS = {
    "add": ("{} + {}", np.add, 0),
    "mul": ("{} * {}", np.multiply, 1),
    "min": ("T.min({}, {})", np.minimum, 100),
    "max": ("T.max({}, {})", np.maximum, -100),
}
"""How a reducer is written, what it is, and where it starts."""


@dataclass
class Assign:
    """`out[at] = value` for each point of `env`."""

    out: str
    at: Sequence[str]
    value: Value
    env: Env

    def apply(self, memory: Env) -> None:
        index, terms = spread(self.at, self.value, env=self.env, memory=memory)
        memory[self.out][index] = terms


@dataclass
class Reduce:
    """`start` in each place of `visited`, then `out[at] = out[at] op value` for each of `env`."""

    out: str
    at: Sequence[str]
    value: Value
    env: Env
    op: str
    start: float | None
    visited: Env

    def apply(self, memory: Env) -> None:
        if self.start is not None:
            full = np.broadcast_shapes(*(found.shape for found in self.visited.values()))
            index = tuple(np.broadcast_to(self.visited[key], full) for key in self.at)
            memory[self.out][index] = self.start
        index, terms = spread(self.at, self.value, env=self.env, memory=memory)
        REDUCERS[self.op][1].at(memory[self.out], index, terms)


def spread(
    at: Sequence[str], value: Value, *, env: Env, memory: Env
) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
    """Where each point stores, and what."""
    full = np.broadcast_shapes(*(found.shape for found in env.values()))
    terms = np.broadcast_to(np.asarray(value.at(env, memory)), full)
    return tuple(np.broadcast_to(env[key], full) for key in at), terms
