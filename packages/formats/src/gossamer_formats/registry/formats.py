"""The formats of tensors: those of the library, and those that installed distributions register.

A distribution registers a format by an entry point of the group `gossamer.formats`, whose name is that of the
format and whose object is a `Format`:

    [project.entry-points."gossamer.formats"]
    blocked_ell = "my_package.blocked_ell:FORMAT"
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from gossamer_formats import descriptions
from gossamer_formats.format import Adapter, Format
from gossamer_formats.registry.named_formats import NamedFormats, formats_in
from gossamer_support.plugins import groups
from gossamer_support.typed_calls import typed

T = TypeVar("T", bound=Adapter)

FORMATS: NamedFormats[Format] = NamedFormats(
    groups.FORMAT_GROUP.name,
    "format",
    expected="a gossamer_formats.Format with this name",
    is_valid=lambda value, name: isinstance(value, Format) and value.name == name,
    built_in=formats_in(descriptions.__name__, descriptions.NAMES),
)


@typed
def format_named(name: str) -> Format:
    """Return the format of a name; raises `FormatError` (`format.unknown`) if there is none.

    Raises `PluginError` if the format is that of another distribution and cannot be used: `plugin.failed`,
    `plugin.duplicate`, or `plugin.entry_point` if the entry point does not name a `Format` of this name.

    >>> dict(format_named("bsr").parameters)
    {'block_rows': None, 'block_columns': None}
    """
    return FORMATS.lookup(name)


def format_names() -> list[str]:
    """Return the names of all formats: those of the library, then those of other distributions, each once.

    >>> format_names()[:4]
    ['bitmask', 'blocked_sell', 'bsr', 'coo']
    """
    return FORMATS.names()


def formats_with(kind: type[T]) -> Iterator[tuple[Format, T]]:
    """Yield the formats that have an adapter of a type, each with this adapter; first those of the library.

    Raises `PluginError` as `format_named` does, when it comes to such a format.

    >>> from gossamer_formats.external_formats.torch_layout import TorchLayout
    >>> [format.name for format, _layout in formats_with(TorchLayout)]
    ['bsr', 'coo', 'csc', 'csr']
    """
    # Lazily, so that a plugin that is broken does not hide the formats before it.
    for name in format_names():
        record = format_named(name)
        adapter = record.adapter(kind)
        if adapter is not None:
            yield record, adapter
