"""The decorator of primitives that a plugin registers."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec

from gossamer_ir.errors import ScheduleError
from gossamer_ir.nodes import Function, Module
from gossamer_ir.verify import verify
from gossamer_schedule.cursor.cursor_at import Cursor, cursor_at
from gossamer_schedule.definition.arguments import require_declared_arguments
from gossamer_schedule.definition.change import Change
from gossamer_schedule.definition.primitive import primitive
from gossamer_schedule.primitive_result import PrimitiveResult
from gossamer_support.plugins.plugin_errors import errors_as_plugin_errors

P = ParamSpec("P")


def plugin_primitive(
    plugin: str, *, stages: tuple[str, ...]
) -> Callable[
    [Callable[Concatenate[Cursor[Function], P], Change]],
    Callable[Concatenate[Module, P], PrimitiveResult],
]:
    """Return a decorator that makes a primitive of a plugin, which its hook `gossamer_primitives` returns.

    The decorated function is written like a primitive of gossamer, and its arguments are checked in the same
    way. Its steps and the codes of its errors have the name `<plugin>.<function>`. Its result is verified: a
    plugin cannot make an invalid module. An exception that is not a `ScheduleError` becomes a `PluginError`
    that names the plugin.

    Raises `TypeError` for a function with arguments that a step cannot hold.

    >>> from gossamer_schedule.plugin_api import LOOP_STAGES, find_loop
    >>> from gossamer_testkit.examples import SCALE
    >>> @plugin_primitive("toy", stages=LOOP_STAGES)
    ... def keep(root, loop: str, *, function: str | None = None):
    ...     return Change(find_loop(root, loop=loop).top, (loop,))
    >>> keep(SCALE, "i").step
    Step(op='toy.keep', args={'loop': 'i'})
    >>> keep(SCALE, "j")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    gossamer_ir.errors.ScheduleError: There is no loop 'j' ... [schedule.toy.keep.no_loop]
    ...
    """

    def decorate(
        implementation: Callable[Concatenate[Cursor[Function], P], Change],
    ) -> Callable[Concatenate[Module, P], PrimitiveResult]:
        op = f"{plugin}.{implementation.__name__}"
        require_declared_arguments(implementation)

        @wraps(implementation)
        def wrapper(root: Cursor[Function], /, *args: P.args, **keywords: P.kwargs) -> Change:
            with errors_as_plugin_errors(
                plugin, doing=f"apply its primitive '{op}'", passing=ScheduleError
            ):
                return _required_change(implementation(root, *args, **keywords))

        return primitive(stages=stages, op=op)(wrapper)

    return decorate


def change_of(result: PrimitiveResult, root: Cursor[Function]) -> Change:
    """Return the change that another primitive has made, for a primitive that is made of others.

    `root` is the cursor at the function that the primitive was given.

    >>> from gossamer_schedule import split
    >>> from gossamer_testkit.examples import SCALE
    >>> root = cursor_at(SCALE, SCALE.functions[0], primitive="toy.blocked")
    >>> change_of(split(root.module, "i", factors=(None, 8)), root).names
    ('i_0', 'i_1')
    """
    (function,) = (item for item in result.module.functions if item.name == root.function.name)
    changed = cursor_at(result.module, function, primitive=root.primitive)
    return Change(changed, result.names, result.forwards, result.values)


def _required_change(returned: object) -> Change:
    """Return the result of a plugin's primitive; raise if it is not a change to a valid module."""
    if not isinstance(returned, Change):
        raise TypeError(f"it returned {returned!r}; expected a Change")
    verify(returned.root.module)
    return returned
