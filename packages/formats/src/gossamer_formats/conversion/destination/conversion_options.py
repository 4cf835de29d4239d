"""The options of conversions, apart from what converts: tensors name them, and most are never converted."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

Duplicates: TypeAlias = Literal["sum", "keep", "error"]
"""Treatment of several elements with equal coordinates."""

Zeros: TypeAlias = Literal["keep", "drop"]
"""Treatment of elements whose value is zero."""


class ConversionOptions(msgspec.Struct, frozen=True):
    """Options of a conversion: the treatment of elements, and the result."""

    duplicates: Duplicates = "sum"
    zeros: Zeros | None = None
    """None drops the zeros that fill dense axes, and keeps those that are stored one by one."""
    index_dtype: str | None = None
    """None is int32 if all indices fit."""
    wants_permutation: bool = True


DEFAULT_OPTIONS = ConversionOptions()
