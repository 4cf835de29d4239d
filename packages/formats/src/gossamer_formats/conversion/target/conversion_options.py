"""The options of conversions, apart from what converts: tensors name them, and most are never converted."""

from __future__ import annotations

from typing import Literal, TypeAlias

Duplicates: TypeAlias = Literal["sum", "keep", "error"]
"""What becomes of several elements with equal coordinates."""

Zeros: TypeAlias = Literal["keep", "drop"]
"""What becomes of elements whose value is zero."""
