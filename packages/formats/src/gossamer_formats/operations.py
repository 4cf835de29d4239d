"""The operators of tensors, such as `@`, which other distributions compute.

Entry points of the group `gossamer.operations` name their functions. Distribution `gossamer` has those of
CSR, named `matmul` and `rmatmul`. An entry point named `ell.matmul` is that of tensors of the format `ell`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from gossamer_ir.errors import FormatError

GROUP = "gossamer.operations"


@cache
def operation_of(name: str, *, format: str = "csr") -> Callable[..., Any]:
    """Return the function of an operation for tensors of a format.

    A format without a function of its own has that of CSR, which may refuse the tensor. Raises `FormatError`
    (`format.operation`) if none is installed.

    >>> operation_of("determinant")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    gossamer_ir.errors.FormatError: No installed distribution computes 'determinant' of sparse tensors. ...
    """
    # `importlib.metadata` takes 20 ms to import, for the first operation only
    from importlib.metadata import entry_points

    for candidate in (f"{format}.{name}", name):
        for entry_point in entry_points(group=GROUP, name=candidate):
            function: Callable[..., Any] = entry_point.load()
            return function
    raise FormatError(
        "format.operation",
        f"No installed distribution computes '{name}' of sparse tensors.",
        hint="Install gossamer.",
    )
