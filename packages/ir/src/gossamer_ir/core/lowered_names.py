"""Names that lowering gives to buffers and loops. A number is appended to names that are taken."""

from __future__ import annotations

from collections.abc import Sequence


def indptr_name(axis_name: str) -> str:
    """Return the name of the buffer of the starts of an axis's fibers.

    >>> indptr_name("J")
    'J_indptr'
    """
    return f"{axis_name}_indptr"


def indices_name(axis_name: str) -> str:
    """Return the name of the buffer of an axis's coordinates."""
    return f"{axis_name}_indices"


def words_name(axis_name: str) -> str:
    """Return the name of the buffer of the words of a bitmask."""
    return f"{axis_name}_words"


def data_name(buffer_name: str) -> str:
    """Return the name of the ordinary buffer of a sparse buffer's elements.

    >>> data_name("A")
    'A_data'
    """
    return f"{buffer_name}_data"


def fused_name(vars: Sequence[str]) -> str:
    """Return the name of the loop over fused axes, given their variables. The primitive `fuse` uses it as
    well.

    >>> fused_name(("i", "j"))
    'i_j'
    """
    return "_".join(vars)
