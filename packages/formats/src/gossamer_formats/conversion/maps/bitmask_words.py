"""Words whose bits are the coordinates of a fiber."""

from __future__ import annotations

import numpy as np

from gossamer_ir.core.axis_kinds import Indices
from gossamer_ir.errors import FormatError
from gossamer_ir.nodes import Axis
from gossamer_ir.support.message_texts import counted


def require_word(axis: Axis, indices: Indices, *, length: int) -> None:
    """Raise `FormatError` (`format.word`) if a word has too few bits for the coordinates of a fiber."""
    bits = np.iinfo(indices.dtype).bits
    if length > bits:
        raise FormatError(
            "format.word",
            f"The axis '{axis.name}' has {counted(length, 'coordinate')}, but a word of {indices.dtype} has "
            f"{bits} bits.",
            hint="Split the axis: write an axis of words above it.",
        )
