"""Checks of offsets and coordinates, and the errors for properties that index arrays lack."""

from __future__ import annotations

import numpy as np

from gossamer_formats.checks.array_checks import (
    INDEX_DTYPES,
    require_dtype,
    require_length,
    require_vector,
)
from gossamer_ir.core.axis_kinds import Indices
from gossamer_ir.errors import FormatError
from gossamer_ir.facts.array_violations import (
    Violation,
    monotone_violation,
    range_violation,
    value_violation,
)
from gossamer_ir.nodes import Axis
from gossamer_support.arrays import Array
from gossamer_support.message_texts import amount
from gossamer_support.typed_calls import typed

_CODES = {
    "range": "format.range",
    "monotone": "format.monotone",
    "value": "format.value",
    "distinct": "format.distinct",
    "bits": "format.bits",
    "sorted": "format.sorted",
    "unique": "format.unique",
}
"""The codes of errors by the property that an array lacks; facts of axes and formats have no others."""
_HINTS = {
    "sorted": "Use sorted=False in the description.",
    "unique": "Use unique=False in the description.",
}
"""Changes of a description for arrays that are as they should be."""


def refuse(violation: Violation | None) -> None:
    """Raise a `FormatError` for a violation.

    >>> refuse(Violation("unique", "Element 3 of 'indices' is 1, which already occurs in its fiber."))
    Traceback (most recent call last):
    ...
    gossamer_ir.errors.FormatError: Element 3 of 'indices' is 1, which already occurs in its fiber. \
Use unique=False in the description. [format.unique]
    """
    if violation is not None:
        raise FormatError(
            _CODES[violation.property],
            violation.sentence,
            hint=_HINTS.get(violation.property, ""),
        )


@typed
def require_valid_indptr(indptr: Array, *, segments: int, total: int, name: str = "indptr") -> None:
    """Require that `indptr` has segments + 1 elements, starts at 0, never decreases and ends at total.

    >>> import numpy as np
    >>> require_valid_indptr(np.array([0, 2, 1]), segments=2, total=1)
    Traceback (most recent call last):
    gossamer_ir.errors.FormatError: Element 2 of 'indptr' is 1, which is less than the one before it, 2. ...
    """
    require_indptr_ends(indptr, segments=segments, total=total, name=name)
    # Only if the ends are right: the first decrease is then the most useful message.
    refuse(monotone_violation((name, indptr)))


def require_indptr_ends(indptr: Array, *, segments: int, total: int, name: str) -> None:
    """Require dtype and length of offsets, and the first and the last one, in constant time."""
    require_vector(name, indptr)
    require_dtype(name, indptr, INDEX_DTYPES)
    require_length(name, indptr, segments + 1, reason="one more than the rows")
    # The ends alone tell most mistakes, such as lengths of rows instead of offsets, at no cost.
    refuse(value_violation((name, indptr), at=0, value=0))
    refuse(value_violation((name, indptr), at=segments, value=total))


@typed
def require_valid_indices(
    indices: Array, *, length: int, count: int, is_padded: bool = False, name: str = "indices"
) -> None:
    """Require that `indices` has `count` elements, all in [0, length); padding has the value `length`.

    >>> import numpy as np
    >>> require_valid_indices(np.array([0, 5]), length=3, count=2)
    Traceback (most recent call last):
    gossamer_ir.errors.FormatError: Element 1 of 'indices' is 5; expected a value from 0 to 2. ...
    """
    require_indices_shape(indices, count=count, name=name)
    refuse(range_violation((name, indices), low=0, high=length + is_padded))


def require_indices_shape(
    indices: Array,
    *,
    count: int,
    name: str,
    dtypes: tuple[str, ...] = INDEX_DTYPES,
    reason: str = "one per nonzero",
) -> None:
    """Require dtype and length of coordinates."""
    require_vector(name, indices)
    require_dtype(name, indices, dtypes)
    require_length(name, indices, count, reason=reason)


def require_word(axis: Axis, indices: Indices, *, length: int) -> None:
    """Raise `FormatError` (`format.word`) if a word has too few bits for the coordinates of a fiber."""
    bits = np.iinfo(indices.dtype).bits
    if length > bits:
        raise FormatError(
            "format.word",
            f"The axis '{axis.name}' has {amount(length, 'coordinate')}, but a word of {indices.dtype} has "
            f"{bits} bits.",
            hint="Split the axis: write an axis of words above it.",
        )
