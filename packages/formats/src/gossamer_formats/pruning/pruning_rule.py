"""A rule for the elements of a matrix that are kept when it is pruned to a format."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec
import numpy as np

from gossamer_formats.format import Adapter
from gossamer_support.arrays import Array


class Nonzeros(msgspec.Struct, frozen=True, eq=False):
    """The nonzeros of a matrix, sorted by row and column, and their magnitudes."""

    shape: tuple[int, ...]
    rows: Array
    columns: Array
    values: Array

    @property
    def magnitudes(self) -> Array:
        """The absolute values."""
        # The magnitude of the least int8 is not one.
        is_integer = self.values.dtype.kind == "i"
        return np.abs(self.values.astype(np.int64) if is_integer else self.values)


class PruningRule(Adapter, frozen=True):
    """A rule of a format: `kept` takes the nonzeros of a matrix, the density and the sizes of the format, and
    returns a mask of the nonzeros that are kept. If the sizes determine the density, the rule does not take
    another (`takes_density`), and `kept` gets 1."""

    kept: Callable[[Nonzeros, float, Mapping[str, int]], Array]
    takes_density: bool = False
