"""The decorator of primitives.

It checks arguments and the stage, finds the function, records the step, adds the program to errors, and
checks the result (`step_checks`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import Signature, signature
from typing import Any, Concatenate, ParamSpec

from gossamer_ir.errors import Place, ScheduleError, UserError
from gossamer_ir.interchange.records import Step
from gossamer_ir.nodes import Function, Module
from gossamer_schedule.cursor.cursor_at import Cursor, cursor_at, name_of
from gossamer_schedule.cursor.find import find_function
from gossamer_schedule.cursor.requirements import require_scheduled_stage
from gossamer_schedule.definition.arguments import (
    arguments_by_name,
    checked_arguments,
    op_of,
    recorded_arguments,
    value_text,
    variadic_argument,
)
from gossamer_schedule.definition.change import Change
from gossamer_schedule.definition.declared_regions import with_true_regions
from gossamer_schedule.definition.step_checks import (
    require_annotations_hold,
    require_no_private_copies,
)
from gossamer_schedule.errors import schedule_error
from gossamer_schedule.primitive_result import PrimitiveResult
from gossamer_support.as_tuple import as_tuple

P = ParamSpec("P")


def primitive(
    *, stages: tuple[str, ...], op: str | None = None
) -> Callable[
    [Callable[Concatenate[Cursor[Function], P], Change]],
    Callable[Concatenate[Module, P], PrimitiveResult],
]:
    """Return a decorator that makes a primitive, which applies to modules of some stages.

    The decorated function takes the cursor at a function and the arguments of the step, and returns a
    `Change`. It declares the keyword `function`, which the decorator resolves. The primitive takes a module
    instead of the cursor, and returns the `PrimitiveResult` with the step of the trace. `op` is the name of
    the step, by default that of the function.

    Its errors show the function that it was applied to, and underline the place of the error, or else the
    first loop, block or iteration that the arguments name.

    Besides its own codes, each primitive raises `ScheduleError` with a code `schedule.<primitive>.*`:

    * `.stage`: the module is of another stage
    * `.no_function`, `.no_loop`, `.no_block`, `.no_iteration`, `.no_buffer`, `.no_name`: no such name
    * `.kind`: a loop is not serial
    * `.shared`, `.pipelined`: a loop would no longer satisfy the requirements of its annotation
    * `.threads`: threads would each have their own copy of a buffer that they share
    * `.depth`: the expressions are nested too deep for Python's stack

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

    def decorate(
        implementation: Callable[Concatenate[Cursor[Function], P], Change],
    ) -> Callable[Concatenate[Module, P], PrimitiveResult]:
        name = op or implementation.__name__
        vars(implementation)["op"] = name

        @wraps(implementation)
        def apply(module: Module, /, *args: P.args, **keywords: P.kwargs) -> PrimitiveResult:
            # The module first: without it, all other arguments are one place off.
            _require_module(module, name)
            by_name = arguments_by_name(implementation, args)
            arguments = checked_arguments(implementation, by_name, keywords)
            try:
                root = find_function(module, name, function=arguments.get("function"))
                # Before the arguments are looked up: a program of another stage has other names.
                require_scheduled_stage(root, stages)
                return _result(implementation, root, arguments)
            except ScheduleError as error:
                place, values = error.diagnostics[0].place, tuple(arguments.values())
                # As a function: only an error that is shown needs the printer, and some are caught.
                error.with_text(
                    lambda: _marked_text(module, place or _place_of_arguments(module, values))
                )
                raise

        vars(apply)["__wrapped__"] = _Shown(implementation)
        return apply

    return decorate


class _Shown:
    """Lets `help` and `inspect` show the module that a primitive takes, not the cursor. The signature is made
    when they ask for it: making it for each primitive takes 2 percent of the imports of a first call."""

    def __init__(self, implementation: Callable[..., Change]) -> None:
        self.__wrapped__ = implementation

    @property
    def __signature__(self) -> Signature:
        shown = signature(self.__wrapped__)
        root, *arguments = shown.parameters.values()
        module = root.replace(name="module", annotation="Module")
        return shown.replace(parameters=[module, *arguments], return_annotation="PrimitiveResult")


def _require_module(module: object, name: str) -> None:
    if not isinstance(module, Module):
        raise schedule_error(
            "module",
            f"{name} applies to a module, not to {value_text(module)}.",
            hint="parse_module gives a module of a script, and gossamer.schedule takes any program.",
        )


def _result(
    implementation: Callable[..., Change], root: Cursor[Function], arguments: dict[str, Any]
) -> PrimitiveResult:
    """Return the result of a primitive with checked arguments."""
    name = op_of(implementation)
    change = _change(implementation, root, arguments)
    changed = change.root.module
    # Here and not in each primitive, so that none can forget it.
    require_annotations_hold(changed, name)
    require_no_private_copies(changed, root.module, name)
    step = Step(name, recorded_arguments(implementation, {**arguments, **change.recorded}))
    return PrimitiveResult(
        with_true_regions(changed), change.names, step, change.forwards, change.values
    )


def _change(
    implementation: Callable[..., Change], root: Cursor[Function], arguments: dict[str, Any]
) -> Change:
    """Return the change of a primitive. Expressions that are nested too deep for Python's stack are an
    error."""
    variadic = variadic_argument(implementation)
    named = dict(arguments)
    variadic_values = () if variadic is None else named.pop(variadic, ())
    # Around the whole primitive: any of its passes may be the one for which an expression is too deep.
    try:
        return implementation(root, *variadic_values, **named)
    except RecursionError:
        name = op_of(implementation)
        raise schedule_error(
            f"{name}.depth",
            f"Expressions of the function, or of the result of {name}, are nested too deep.",
            hint="Apply fewer steps that substitute expressions into others, such as caches of index arrays.",
        ) from None


def _place_of_arguments(module: Module, arguments: tuple[object, ...]) -> Place:
    """Return the place of the first statement that an argument names, else of the function."""
    functions = {function.name: number for number, function in enumerate(module.functions)}
    names = [part for value in arguments for part in as_tuple(value)]
    position = next(
        (functions[name] for name in names if name in functions), functions[module.entry]
    )
    cursors = cursor_at(module, module.functions[position]).below()
    # Without statements that have no name: an argument that is None names none of them.
    places = {name: cursor.place for cursor in cursors if (name := name_of(cursor.node))}
    return next((places[name] for name in names if name in places), ("functions", position))


def _marked_text(module: Module, place: Place) -> str:
    from gossamer_ir.script.carets import caret_text  # imported late: only errors need the printer

    try:
        return caret_text(module, place)
    except UserError:  # nested deeper than the printer allows
        return ""
