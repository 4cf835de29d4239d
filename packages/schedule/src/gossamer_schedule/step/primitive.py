"""What all primitives have in common: where one refuses, its error shows the program; none takes from
a loop what its mark relies on."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec

from msgspec.structs import replace

from gossamer_ir.analysis.atomics import is_atomic, shared_otherwise
from gossamer_ir.analysis.software_pipelining import copies_ahead, is_pipelined
from gossamer_ir.errors import Place, ScheduleError, UserError
from gossamer_ir.nodes import For, Function, Module
from gossamer_schedule.cursor.cursor import cursor_at, name_of, statements_of
from gossamer_schedule.cursor.declared_regions import with_true_regions
from gossamer_schedule.cursor.thread_scopes import split_buffers
from gossamer_schedule.errors import schedule_error
from gossamer_schedule.result import Result
from gossamer_schedule.step.arguments import a_value, arguments_by_name, checked, one_by_one

P = ParamSpec("P")


def primitive(
    function: Callable[Concatenate[Module, P], Result],
) -> Callable[Concatenate[Module, P], Result]:
    """The primitive, whose errors show the function that it was applied to, the place underlined: that
    of the error, else that of the first loop, block or iteration that the arguments name.

    >>> from gossamer_schedule import unroll
    >>> from gossamer_testkit.examples import SCALE
    >>> unroll(SCALE, "i")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    gossamer_ir.errors.ScheduleError: The extent of loop 'i' is n, not a constant ... [schedule.unroll.extent]
    @T.prim_func
    def scale(
        x: T.handle,
        y: T.handle,
        n: T.int64,
    ) -> None:
        T.func_attr({"sparse_tir_level": 0})
        X = T.match_buffer(x, (n,), "float32")
        Y = T.match_buffer(y, (n,), "float32")
        for i in T.serial(n):
        ^^^^^^^^^^^^^^^^^^^^^
            with T.block("scale"):
                vi = T.axis.spatial(n, i)
                Y[vi] = X[vi] * 2.0
    """

    @wraps(function)
    def applied(module: Module, /, *args: P.args, **keywords: P.kwargs) -> Result:
        _require_module(module, function.__name__)
        by_name = arguments_by_name(function, args)
        given = checked(function, by_name, keywords)
        try:
            result = _result(function, module, given)
            _require_marks(result.module, function.__name__)
            _require_seen(result.module, module, function.__name__)
            return replace(result, module=with_true_regions(result.module))
        except ScheduleError as error:
            place, values = error.diagnostics[0].place, tuple(given.values())
            error.with_text(lambda: _shown(module, place or _named(module, values)))
            raise

    return applied


def _require_module(module: object, name: str) -> None:
    if not isinstance(module, Module):
        raise schedule_error(
            "module",
            f"{name} applies to a module, not to {a_value(module)}.",
            hint="parse_module makes one of a script, gossamer.schedule a builder of any program.",
        )


def _result(function: Callable[..., Result], module: Module, given: dict[str, Any]) -> Result:
    """What a primitive makes, unless its expressions are nested deeper than can be followed."""
    listed = one_by_one(function)
    named = dict(given) if listed else given
    several = named.pop(listed, ())
    try:
        return function(module, *several, **named)
    except RecursionError:
        name = function.__name__
        raise schedule_error(
            f"{name}.depth",
            f"The expressions of the function, or of what {name} would make of it, are nested too deep.",
            hint="Apply fewer steps that put expressions into others, such as caches of index arrays.",
        ) from None


def _require_marks(module: Module, name: str) -> None:
    """Marked loops are still what their marks say."""
    for function in module.functions:
        for found in statements_of(function):
            if not isinstance(found, For) or not found.annotations:
                continue
            if is_atomic(found):
                _require_accumulating(found, name)
            if is_pipelined(found):
                _require_copies(found, function, name)


def _require_seen(made: Module, module: Module, name: str) -> None:
    """Threads use no buffer of their own for what others use, unless they did so before."""
    for function in made.functions:
        for cursor, buffer in split_buffers(cursor_at(made, function)):
            if any(
                found[1] == buffer
                for old in module.functions
                for found in split_buffers(cursor_at(module, old))
            ):
                continue
            raise schedule_error(
                f"{name}.threads",
                f"Each thread of loop '{cursor.node.var}' would have its own '{buffer}', which is used "
                "outside of the loop, too.",
                hint="Choose a scope that the threads share, by set_scope.",
            )


def _require_accumulating(loop: For, name: str) -> None:
    """A loop whose iterations share elements does nothing else to what it writes."""
    buffer = shared_otherwise(loop)
    if buffer is not None:
        raise schedule_error(
            f"{name}.shared",
            f"The iterations of loop '{loop.var}' would no longer only accumulate into "
            f"'{buffer}', of which they share elements.",
            hint=f"Apply {name} before the loop is made parallel.",
        )


def _require_copies(loop: For, function: Function, name: str) -> None:
    """A loop several iterations of which are under way at once begins with copies that may run ahead."""
    if loop.kind != "serial" or not copies_ahead(loop, function):
        raise schedule_error(
            f"{name}.pipelined",
            f"Loop '{loop.var}', several iterations of which are under way at once, would no longer be "
            "serial and begin with a copy.",
            hint=f"Apply {name} before pipeline.",
        )


def _named(module: Module, arguments: tuple[object, ...]) -> Place:
    """The place of the first statement that an argument names, else the entry."""
    functions = {found.name: number for number, found in enumerate(module.functions)}
    names = [
        part for found in arguments for part in (found if isinstance(found, tuple) else [found])
    ]
    number = next((functions[name] for name in names if name in functions), functions[module.entry])
    every = cursor_at(module, module.functions[number]).below()
    places = {name_of(found.node): found.place for found in every}
    return next((places[name] for name in names if name in places), ("functions", number))


def _shown(module: Module, place: Place) -> str:
    from gossamer_ir.script.marked import marked  # the printer is for errors only

    try:
        return marked(module, place)
    except UserError:  # nested deeper than text may be
        return ""
