"""Arrays that a tensor shares with the object that it was made of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from gossamer_ir.errors import FormatError
from gossamer_support.arrays import Array


def require_shared(what: str, arrays: Mapping[str, Array], sources: Iterable[Array]) -> None:
    """Raise a `FormatError` (`format.copy`) unless each array is in the memory of one of the sources."""
    listed = list(sources)
    for name, array in arrays.items():
        if array.size and not any(np.may_share_memory(array, source) for source in listed):
            raise FormatError(
                "format.copy",
                f"The array '{name}' of {what} must be converted, so it cannot be shared.",
                hint="Use copy=True.",
            )
