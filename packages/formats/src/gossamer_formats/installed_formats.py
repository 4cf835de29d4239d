"""The formats that tensors can have, besides CSR: those that installed distributions register.

A distribution registers a format by an entry point of the group `gossamer.formats`, whose name is that of the
format and whose object is a `Format`:

    [project.entry-points."gossamer.formats"]
    ell = "my_package.ell:ELL"
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import NamedTuple

from gossamer_formats.storage import Array, Storage
from gossamer_ir.errors import FormatError

GROUP = "gossamer.formats"


class Format(NamedTuple):
    """A format of tensors.

    `from_arrays` describes the arrays of a tensor of a shape, `from_csr` and `to_csr` convert from and to
    CSR. They need not check arrays: the storage that they return is checked against its description.
    `docs/formats.md` has an example with arrays of its own.

    >>> from gossamer_formats.descriptions.csr import csr
    >>> def unchanged(storage):
    ...     return storage
    >>> Format("also_csr", lambda shape, arrays: Storage(csr(), {}, arrays), unchanged, unchanged).name
    'also_csr'
    """

    name: str
    from_arrays: Callable[[tuple[int, int], Mapping[str, Array]], Storage]
    from_csr: Callable[[Storage], Storage]
    to_csr: Callable[[Storage], Storage]


@cache
def find_format(name: str) -> Format | None:
    """Return the registered format of a name, or None.

    Raises `FormatError` (`format.entry_point`) if the entry point does not name a `Format` of this name.

    >>> find_format("ell") is None
    True
    """
    from importlib.metadata import entry_points  # takes 20 ms to import, and CSR does not need it

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


def format_named(name: str) -> Format:
    """Return the registered format of a name; raises `FormatError` (`format.unknown`) if there is none."""
    registered = find_format(name)
    if registered is None:
        raise FormatError(
            "format.unknown",
            f"Tensors cannot have the format '{name}'; expected one of: {', '.join(_names())}.",
        )
    return registered


def _names() -> list[str]:
    from importlib.metadata import entry_points

    return ["csr", *sorted(entry_point.name for entry_point in entry_points(group=GROUP))]
