"""The formats that tensors can have: those of the library, and those that installed distributions register.

A distribution registers a format by an entry point of the group `gossamer.formats`, whose name is that of the
format and whose object is a `Format`:

    [project.entry-points."gossamer.formats"]
    blocked_ell = "my_package.blocked_ell:FORMAT"
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from importlib import import_module

from gossamer_formats import descriptions
from gossamer_formats.format import Format
from gossamer_formats.registry.registered_objects import registered_object, wrong_object_error
from gossamer_ir.errors import FormatError, GossamerError
from gossamer_ir.plugins.installed_distributions import EntryPoint, installed_entry_points
from gossamer_ir.plugins.plugin_errors import errors_as_plugin_errors
from gossamer_ir.support.typed_calls import typed

GROUP = "gossamer.formats"


@cache
def find_format(name: str) -> Format | None:
    """Return the format of a name, or None.

    Raises `PluginError` if the format is that of another distribution and cannot be used: `plugin.failed`,
    `plugin.duplicate`, or `plugin.entry_point` if the entry point does not name a `Format` of this name.

    >>> find_format("csr").name, find_format("rows")
    ('csr', None)
    """
    # The names of the library are its own: otherwise, any distribution could
    # block one of its formats. `ignored_entry_points` lists those that try.
    if name in descriptions.NAMES:
        # Imported when needed: a program uses few of the formats.
        listed: Format = import_module(f"gossamer_formats.descriptions.{name}").FORMAT
        return listed
    registered = registered_object(GROUP, name, what=f"the format '{name}'")
    if registered is None:
        return None
    if isinstance(registered, Format) and registered.name == name:
        return registered
    raise wrong_object_error(
        GROUP, name, registered, expected=f"a gossamer_formats.Format with the name '{name}'"
    )


@typed
def format_named(name: str) -> Format:
    """Return the format of a name; raises `FormatError` (`format.unknown`) if there is none.

    >>> dict(format_named("bsr").parameters)
    {'block_rows': None, 'block_columns': None}
    """
    found = find_format(name)
    if found is None:
        raise FormatError(
            "format.unknown",
            f"Tensors cannot have the format '{name}'; expected one of: {', '.join(format_names())}.",
        )
    return found


def format_names() -> list[str]:
    """Return the names of all formats: those of the library, then those of other distributions, each once.

    >>> format_names()[:4]
    ['bsr', 'coo', 'csc', 'csf']
    """
    registered = {point.name for point in installed_entry_points(GROUP)}
    return [*descriptions.NAMES, *sorted(registered.difference(descriptions.NAMES))]


def errors_of_format(name: str, *, doing: str) -> AbstractContextManager[None]:
    """Return a context that turns exceptions of another distribution's format into `PluginError`
    (`plugin.failed`), which names the format and the distribution. Errors of gossamer pass.

    >>> with errors_of_format("csr", doing="describe the format"):
    ...     raise ValueError("of the library itself")
    Traceback (most recent call last):
    ...
    ValueError: of the library itself
    """
    if name in descriptions.NAMES:
        return nullcontext()
    owners = [point.distribution for point in installed_entry_points(GROUP) if point.name == name]
    return errors_as_plugin_errors(
        ", ".join(owners), doing=f"{doing} '{name}'", passing=GossamerError
    )


def ignored_entry_points() -> list[EntryPoint]:
    """Return the entry points of formats whose names are those of formats of the library.

    >>> ignored_entry_points()
    []
    """
    return [point for point in installed_entry_points(GROUP) if point.name in descriptions.NAMES]
