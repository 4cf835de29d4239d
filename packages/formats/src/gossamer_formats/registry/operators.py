"""The operators of tensors, such as `@`, which other distributions compute.

Entry points of the group `gossamer.operations` name their functions. Distribution `gossamer` has those of
CSR, named `matmul` and `rmatmul`, and `compile`, which compiles the programs of conversions. An entry point
named `ell.matmul` is that of tensors of the format `ell`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from gossamer_formats.registry.registered_objects import registered_object, wrong_object_error
from gossamer_ir.errors import FormatError

GROUP = "gossamer.operations"


@cache
def operation_of(name: str, *, format: str = "csr") -> Callable[..., Any]:
    """Return the function of an operation for tensors of a format.

    A format without a function of its own has that of CSR, which may refuse the tensor. Raises `FormatError`
    (`format.operation`) if none is installed, and `PluginError` if it cannot be used: `plugin.failed`,
    `plugin.duplicate`, or `plugin.entry_point` if it cannot be called.

    >>> operation_of("determinant")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    gossamer_ir.errors.FormatError: No installed distribution computes 'determinant' of sparse tensors. ...
    """
    for candidate in (f"{format}.{name}", name):
        function = find_operation(candidate)
        if function is not None:
            return function
    raise FormatError(
        "format.operation",
        f"No installed distribution computes '{name}' of sparse tensors.",
        hint="Install gossamer.",
    )


@cache
def find_operation(name: str) -> Callable[..., Any] | None:
    """Return the function of an entry point, or None if there is none.

    Raises `PluginError` if it cannot be used.

    >>> find_operation("determinant")
    """
    registered = registered_object(GROUP, name, what=f"the operation '{name}'")
    if registered is None:
        return None
    if not callable(registered):
        raise wrong_object_error(GROUP, name, registered, expected="a function")
    function: Callable[..., Any] = registered
    return function
