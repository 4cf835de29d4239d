"""The formats that tensors can have: those of the library, and those that installed distributions register.

A distribution registers a format by an entry point of the group `gossamer.formats`, whose name is that of the
format and whose object is a `Format`:

    [project.entry-points."gossamer.formats"]
    blocked_ell = "my_package.blocked_ell:FORMAT"
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

from gossamer_formats import descriptions
from gossamer_formats.format import Format
from gossamer_ir.errors import FormatError
from gossamer_ir.support.typed_calls import typed

GROUP = "gossamer.formats"


@cache
def find_format(name: str) -> Format | None:
    """Return the format of a name, or None.

    Raises `FormatError` (`format.entry_point`) if the entry point does not name a `Format` of this name.

    >>> find_format("csr").name, find_format("rows")
    ('csr', None)
    """
    if name in descriptions.NAMES:
        # Imported when needed: a program uses few of the formats.
        listed: Format = import_module(f"gossamer_formats.descriptions.{name}").FORMAT
        return listed

    from importlib.metadata import entry_points  # takes 20 ms to import

    for entry_point in entry_points(group=GROUP, name=name):
        registered = entry_point.load()
        if isinstance(registered, Format) and registered.name == name:
            return registered
        raise FormatError(
            "format.entry_point",
            f"The entry point '{name}' of the group '{GROUP}' names an object of type "
            f"'{type(registered).__name__}'; expected a gossamer_formats.Format with the name '{name}'.",
        )
    return None


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
    """Return the names of all formats: those of the library, then those of other distributions.

    >>> format_names()[:4]
    ['bsr', 'coo', 'csc', 'csf']
    """
    from importlib.metadata import entry_points

    return [
        *descriptions.NAMES,
        *sorted(entry_point.name for entry_point in entry_points(group=GROUP)),
    ]
