"""The composable formats: those of the library, and those that installed distributions register.

A distribution registers a composable format by an entry point of the group `gossamer.composable_formats`,
whose name is that of the format and whose object is a `ComposableFormat`:

    [project.entry-points."gossamer.composable_formats"]
    quadrants = "my_package.quadrants:FORMAT"
"""

from __future__ import annotations

from gossamer_formats.decomposition import composable
from gossamer_formats.decomposition.composable_format import ComposableFormat
from gossamer_formats.registry.named_objects import NamedObjects
from gossamer_ir.plugins import groups

COMPOSABLE_FORMATS: NamedObjects[ComposableFormat] = NamedObjects(
    groups.COMPOSABLE_FORMAT_GROUP.name,
    "composable format",
    expected="a gossamer_formats.ComposableFormat with this name",
    is_valid=lambda found, name: isinstance(found, ComposableFormat) and found.name == name,
    library=composable,
)
