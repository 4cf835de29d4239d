"""The operators of tensors, such as `@`, which another distribution computes.

It is named by the entry points of the group `gossamer.operations`; distribution `gossamer` has one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from gossamer_ir.errors import FormatError

GROUP = "gossamer.operations"


@cache
def operation(name: str) -> Callable[..., Any]:
    """The function of an operation; raises `FormatError` (`format.operation`) if none is installed."""
    from importlib.metadata import (
        entry_points,
    )  # takes 20 ms to import, for the first operation only

    for found in entry_points(group=GROUP, name=name):
        function: Callable[..., Any] = found.load()
        return function
    raise FormatError(
        "format.operation",
        f"No installed distribution computes '{name}' of sparse tensors.",
        hint="Install gossamer.",
    )
