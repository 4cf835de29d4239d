"""The options of conversions, apart from what converts: tensors name them, and most are never converted."""

from __future__ import annotations

from typing import Literal, TypeAlias

Duplicates: TypeAlias = Literal["sum", "keep", "error"]
"""Treatment of several elements with equal coordinates."""

Zeros: TypeAlias = Literal["keep", "drop"]
"""Treatment of elements whose value is zero."""
