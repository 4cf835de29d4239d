"""Primitives by the name that steps give them: those of gossamer and those of plugins."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeAlias

from gossamer_schedule.errors import listing, schedule_error
from gossamer_schedule.primitive_result import PrimitiveResult
from gossamer_schedule.trace.primitive_table import PRIMITIVES

PluginPrimitives: TypeAlias = Mapping[str, Callable[..., PrimitiveResult]]
"""The primitives of a plugin by their names in steps, `<plugin>.<name>`."""

NO_PLUGIN_PRIMITIVES: PluginPrimitives = MappingProxyType({})


def find_primitive(
    op: str, plugin_primitives: PluginPrimitives = NO_PLUGIN_PRIMITIVES
) -> Callable[..., PrimitiveResult]:
    """Return the primitive of a step.

    Raises `ScheduleError`: `schedule.replay.no_primitive`, and `schedule.replay.no_plugin` if the name is
    that of a plugin's primitive, and there are no primitives of that plugin.

    >>> find_primitive("split").__name__
    'split'
    >>> find_primitive("toy.keep")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    gossamer_ir.errors.ScheduleError: The step 'toy.keep' needs the plugin 'toy', whose ...
    """
    primitive = PRIMITIVES.get(op) or plugin_primitives.get(op)
    if primitive is not None:
        return primitive
    plugin, is_of_plugin, _ = op.rpartition(".")
    names = [name for name in plugin_primitives if name.rpartition(".")[0] == plugin]
    if is_of_plugin and not names:
        raise schedule_error(
            "replay.no_plugin",
            f"The step '{op}' needs the plugin '{plugin}', whose primitives are not available.",
            hint=f"Install the plugin and choose one of its targets, as with target='{plugin}'; or give its "
            "primitives to ScheduleBuilder or replay as primitives=.",
        )
    raise schedule_error(
        "replay.no_primitive",
        f"There is no primitive '{op}'.",
        hint=listing("primitives", names if is_of_plugin else PRIMITIVES),
    )
