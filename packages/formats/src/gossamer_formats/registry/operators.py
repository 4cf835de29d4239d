"""The operators of tensors that installed distributions compute.

An entry point of the group `gossamer.operators` names the function that computes an operator for tensors of
one format:

    [project.entry-points."gossamer.operators"]
    "tiles.spmm" = "my_package.tiles:spmm"

Distribution `gossamer` registers those of CSR, to which tensors of formats without an own one are converted.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from gossamer_formats.registry.installed_formats import format_names
from gossamer_formats.registry.registered_objects import registered_object, wrong_object_error
from gossamer_ir.errors import FormatError
from gossamer_ir.plugins.installed_distributions import EntryPoint, installed_entry_points

GROUP = "gossamer.operators"

COMPILER_GROUP = "gossamer.compilers"
"""The group of the function that compiles the programs of conversions, which distribution `gossamer` has."""

OPEN_OPERATORS = ("matmul", "rmatmul", "spmm", "spmv", "sddmm", "attention")
"""The operators that a distribution can compute for tensors of a format."""


@cache
def operator_of(name: str, *, format: str = "csr") -> Callable[..., Any]:
    """Return the function of an operator for tensors of a format.

    A format without a function of its own has that of CSR, which may refuse the tensor. Raises `FormatError`
    (`format.operator`) if none is installed, and `PluginError` if it cannot be used: `plugin.failed`,
    `plugin.duplicate`, or `plugin.entry_point` if it cannot be called.

    >>> operator_of("determinant")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    gossamer_ir.errors.FormatError: No installed distribution computes 'determinant' of sparse tensors. ...
    """
    for candidate in dict.fromkeys((format, "csr")):
        function = find_operator(name, format=candidate)
        if function is not None:
            return function
    raise FormatError(
        "format.operator",
        f"No installed distribution computes '{name}' of sparse tensors.",
        hint="Install gossamer of the same version.",
    )


@cache
def find_operator(name: str, *, format: str) -> Callable[..., Any] | None:
    """Return the function that a distribution registers for an operator and a format, or None.

    Raises `PluginError` as `operator_of` does.

    >>> find_operator("determinant", format="csr")
    """
    return _function(GROUP, f"{format}.{name}", what=f"the operator '{format}.{name}'")


@cache
def find_compiler() -> Callable[..., Any] | None:
    """Return the function that compiles a module, or None if no installed distribution has one."""
    return _function(COMPILER_GROUP, "compile", what="the compiler of conversions")


def ignored_operators() -> dict[EntryPoint, str]:
    """Return the entry points of operators that are never used, with the reasons.

    >>> ignored_operators()
    {}
    """
    points = installed_entry_points(GROUP)
    reasons = {point: _reason(point, points) for point in points}
    return {point: reason for point, reason in reasons.items() if reason}


def _reason(point: EntryPoint, points: tuple[EntryPoint, ...]) -> str:
    format, _, name = point.name.rpartition(".")
    if name not in OPEN_OPERATORS:
        return f"'{name}' is not an operator; expected one of {', '.join(OPEN_OPERATORS)}"
    if format not in format_names():
        return f"there is no format '{format}'"
    owners = sorted({other.distribution for other in points if other.name == point.name})
    return f"{' and '.join(owners)} register it" if len(owners) > 1 else ""


def _function(group: str, name: str, *, what: str) -> Callable[..., Any] | None:
    registered = registered_object(group, name, what=what)
    if registered is None:
        return None
    if not callable(registered):
        raise wrong_object_error(group, name, registered, expected="a function")
    function: Callable[..., Any] = registered
    return function
