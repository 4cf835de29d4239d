"""Objects that installed distributions register by the names of entry points: formats and operators."""

from __future__ import annotations

from typing import Any

from gossamer_ir.errors import PluginError
from gossamer_ir.plugins.installed_distributions import installed_entry_points
from gossamer_ir.plugins.plugin_errors import duplicate_error, errors_as_plugin_errors


def registered_object(group: str, name: str, *, what: str) -> Any:
    """Import and return the object that a distribution registers in a group, or None if there is none.

    Raises `PluginError`: `plugin.duplicate` if several distributions register the name, `plugin.failed` if
    the object cannot be imported. `what` describes it in messages, such as "the format 'tiles'".

    >>> print(registered_object("no.such.group", "tiles", what="the format 'tiles'"))
    None
    """
    points = [point for point in installed_entry_points(group) if point.name == name]
    if len(points) > 1:
        raise duplicate_error(what, points)
    for point in points:
        with errors_as_plugin_errors(point.distribution, doing=f"register {what}"):
            return point.load()
    return None


def wrong_object_error(group: str, name: str, found: object, *, expected: str) -> PluginError:
    """Return the error for an entry point that names another object than its group has.

    >>> str(wrong_object_error("acme.colors", "red", 7, expected="a color"))
    "The entry point 'red' of the group 'acme.colors' names an object of type 'int'; expected a color. \
[plugin.entry_point]"
    """
    return PluginError(
        "plugin.entry_point",
        f"The entry point '{name}' of the group '{group}' names an object of type "
        f"'{type(found).__name__}'; expected {expected}.",
    )
