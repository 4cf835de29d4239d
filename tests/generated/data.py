"""The sizes, arrays and declarations of a program."""

from __future__ import annotations

from random import Random

import numpy as np

from tests.generated.expressions import FLOATS, Env, Value


class Data:
    """What a program is called with, and what its memory holds according to the oracle: flat arrays
    of float64 or int64, by buffer."""

    def __init__(self, rng: Random, dtype: str, *, special: bool) -> None:
        self.rng, self.dtype, self.special = rng, dtype, special
        self.wide = np.float64 if dtype in FLOATS else np.int64
        self.sizes: dict[str, int] = {}
        self.memory: Env = {}
        self.arrays: dict[str, np.ndarray] = {}
        self.declared: list[str] = []
        self.fresh = 0

    def size(self, name: str, value: int) -> str:
        """A size as a parameter or as a number; the same each time."""
        if name not in self.sizes:
            self.sizes[name] = value if self.rng.random() < 0.7 else -1
        return str(value) if self.sizes[name] < 0 else name

    def parameters(self) -> dict[str, int]:
        """The sizes that are passed."""
        return {name: value for name, value in self.sizes.items() if value >= 0}

    def integers(self, count: int, low: int = -3, high: int = 4) -> np.ndarray:
        drawn = [self.rng.randint(low, high) for _ in range(count)]
        found = np.array(drawn, self.dtype)
        if self.special and count:
            for _ in range(self.rng.randint(0, 3)):
                found[self.rng.randrange(count)] = self.rng.choice((np.nan, np.inf, -np.inf, -0.0))
        return found

    def buffer(self, stem: str, axes: str, shape: tuple[int, ...], *, handle: bool = True) -> str:
        """Declares a buffer of values with random contents, or one that the program allocates."""
        self.fresh += 1
        name = f"{stem}{self.fresh}"
        values = self.integers(int(np.prod(shape))).reshape(shape)
        self.memory[name] = values.astype(self.wide)
        if handle:
            self.arrays[name.lower()] = values
            text = f'T.sp.match_buffer({name.lower()}, ({axes},), "{self.dtype}")'
        else:
            text = f'T.sp.alloc_buffer(({axes},), "{self.dtype}")'
        self.declared.append(f"{name} = {text}")
        return name

    def once(self, stem: str, axes: str, shape: tuple[int, ...]) -> str:
        """A buffer that was declared before under this stem, or a new one."""
        for name in self.memory:
            if name.rstrip("0123456789") == stem:
                return name
        return self.buffer(stem, axes, shape)

    def load(self, name: str, index: str, *at: str) -> Value:
        def value(env: Env, memory: Env) -> np.ndarray:
            return memory[name][tuple(env[key] for key in at)]

        return Value(f"{name}[{index}]", value, 4)

    def gathered(self, name: str, column: str, length: int) -> Value:
        """A load through a permutation, which nothing proves in bounds."""
        if "perm" not in self.arrays:
            permutation = np.array(self.rng.sample(range(length), length), np.int32)
            self.arrays["perm"] = permutation
            self.declared.append('PERM = T.sp.match_buffer(perm, (N,), "int32")')
        at = self.arrays["perm"]
        return Value(
            f"{name}[T.int64(PERM[{column}])]",
            lambda env, memory: memory[name][at[env["column"]]],
            4,
        )
