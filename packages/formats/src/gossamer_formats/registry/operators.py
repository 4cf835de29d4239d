"""The operators of tensors that installed distributions compute.

An entry point of the group `gossamer.operators` names the function that computes an operator for tensors of
one format:

    [project.entry-points."gossamer.operators"]
    "tiles.spmm" = "my_package.tiles:spmm"

The distribution `gossamer` registers the operators for CSR. Tensors in formats without their own operator are
converted to CSR.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from gossamer_formats.registry.formats import format_names
from gossamer_ir.errors import FormatError
from gossamer_support.plugins import groups
from gossamer_support.plugins.installed_distributions import EntryPoint, installed_entry_points
from gossamer_support.plugins.named_objects import NamedObjects

OPERATORS: NamedObjects[Callable[..., Any]] = NamedObjects(
    groups.OPERATOR_GROUP.name,
    "operator",
    expected="a function",
    is_valid=lambda value, name: callable(value),
)


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
    # Without repetition for CSR itself.
    for candidate in dict.fromkeys((format, "csr")):
        function = find_operator(name, format=candidate)
        if function is not None:
            return function
    raise FormatError(
        "format.operator",
        f"No installed distribution computes '{name}' of sparse tensors.",
        hint="Install gossamer of the same version.",
    )


def find_operator(name: str, *, format: str) -> Callable[..., Any] | None:
    """Return the function that a distribution registers for an operator and a format, or None.

    Raises `PluginError` as `operator_of` does.

    >>> find_operator("determinant", format="csr")
    """
    return OPERATORS.find(f"{format}.{name}")


def operator_names() -> list[str]:
    """Return the operators that a distribution can compute for tensors of a format: those for CSR, to which
    all other formats can be converted."""
    names = (point.name for point in installed_entry_points(OPERATORS.group))
    return sorted({name.removeprefix("csr.") for name in names if name.startswith("csr.")})


def ignored_operators() -> dict[EntryPoint, str]:
    """Return the entry points of operators that are never used, with the reasons.

    >>> ignored_operators()
    {}
    """
    points = installed_entry_points(OPERATORS.group)
    reasons = {point: _reason(point, points) for point in points}
    return {point: reason for point, reason in reasons.items() if reason is not None}


def _reason(point: EntryPoint, points: tuple[EntryPoint, ...]) -> str | None:
    format, _, name = point.name.rpartition(".")
    names = operator_names()
    if name not in names:
        return f"'{name}' is not an operator; expected one of {', '.join(names)}"
    if format not in format_names():
        return f"there is no format '{format}'"
    owners = sorted({other.distribution for other in points if other.name == point.name})
    return f"{' and '.join(owners)} register it" if len(owners) > 1 else None
