"""Checks the logical shape of a tensor."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index

from gossamer_ir.errors import FormatError
from gossamer_support.message_texts import amount


def required_shape(shape: Sequence[int], *, ndim: int | None = None) -> tuple[int, ...]:
    """Return the shape as integers.

    Raises `FormatError` (`format.shape`) unless all are from 0 to 2**63 - 1, and as many as `ndim`.

    >>> required_shape([2, np.int64(3)])
    (2, 3)
    """
    try:
        # `index` takes NumPy's integers, and refuses floats such as 3.0, which are mistakes.
        sizes = tuple(index(size) for size in shape)
    except TypeError:
        sizes = ()
    if not sizes or not 0 <= min(sizes) <= max(sizes) < 2**63 or ndim not in (None, len(sizes)):
        count = amount(ndim, "size") if ndim else "sizes"
        raise FormatError(
            "format.shape", f"The shape is {shape}; expected {count} from 0 to 2**63 - 1."
        )
    return sizes
