"""The composable formats: those of the library, and those that installed distributions register.

A composable format is a function that takes a CSR matrix with sorted and unique columns, and parameters by
keyword, and returns the parts. A distribution registers one by an entry point of the group
`gossamer.decompositions`, whose name is that of the format:

    [project.entry-points."gossamer.decompositions"]
    quadrants = "my_package.quadrants:quadrants"
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from inspect import Parameter, signature
from typing import TypeAlias

from gossamer_formats.decomposition.hyb import hyb
from gossamer_formats.decomposition.part import Part
from gossamer_formats.registry.registered_objects import registered_object, wrong_object_error
from gossamer_ir.errors import FormatError
from gossamer_ir.plugins.installed_distributions import EntryPoint, installed_entry_points
from gossamer_ir.support.typed_calls import typed

GROUP = "gossamer.decompositions"

ComposableFormat: TypeAlias = Callable[..., Iterable[Part]]
"""Returns the parts of a CSR matrix with sorted and unique columns; its keywords are the parameters."""

LIBRARY: dict[str, ComposableFormat] = {"hyb": hyb}
"""Those of the library; no other distribution can register one of these names."""


@cache
def find_composable_format(name: str) -> ComposableFormat | None:
    """Return the composable format of a name, or None.

    Raises `PluginError` if it is that of another distribution and cannot be used: `plugin.failed`,
    `plugin.duplicate`, or `plugin.entry_point` if the entry point does not name a function.

    >>> find_composable_format("hyb").__name__, find_composable_format("csr")
    ('hyb', None)
    """
    if name in LIBRARY:
        return LIBRARY[name]
    registered = registered_object(GROUP, name, what=f"the composable format '{name}'")
    if registered is None or callable(registered):
        found: ComposableFormat | None = registered
        return found
    raise wrong_object_error(GROUP, name, registered, expected="a function")


@typed
def composable_format_named(name: str) -> ComposableFormat:
    """Return the composable format of a name; raises `FormatError` (`format.unknown`) if there is none.

    >>> parameters_of(composable_format_named("hyb"))
    {'c': 1, 'k': None}
    """
    found = find_composable_format(name)
    if found is None:
        raise FormatError(
            "format.unknown",
            f"Tensors cannot be decomposed as '{name}'; expected one of: "
            f"{', '.join(composable_format_names())}.",
        )
    return found


def composable_format_names() -> list[str]:
    """Return the names of all composable formats, each once.

    >>> composable_format_names()[0]
    'hyb'
    """
    registered = {point.name for point in installed_entry_points(GROUP)}
    return [*LIBRARY, *sorted(registered.difference(LIBRARY))]


def ignored_decompositions() -> list[EntryPoint]:
    """Return the entry points of composable formats whose names are those of the library.

    >>> ignored_decompositions()
    []
    """
    return [point for point in installed_entry_points(GROUP) if point.name in LIBRARY]


def parameters_of(format: ComposableFormat) -> dict[str, object]:
    """Return the parameters of a composable format with their defaults (`Parameter.empty`: none)."""
    found = signature(format).parameters.values()
    return {each.name: each.default for each in found if each.kind is Parameter.KEYWORD_ONLY}
