"""The facts that compiled checks know."""

from __future__ import annotations

from typing import TypeAlias, Union

from gossamer_ir.nodes import (
    BitCounts,
    Distinct,
    HasValue,
    InRange,
    Monotone,
    PaddedSlots,
    ProductSteps,
    Relation,
    SortedSegments,
)

CheckedFact: TypeAlias = Union[
    InRange,
    Monotone,
    SortedSegments,
    PaddedSlots,
    Distinct,
    HasValue,
    ProductSteps,
    BitCounts,
    Relation,
]
"""A fact about one buffer, or about it and others that have facts of their own."""
