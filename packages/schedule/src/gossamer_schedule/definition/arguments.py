"""Checks the arguments of primitives, and converts them to a record by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from functools import cache
from inspect import CO_VARARGS, unwrap
from operator import index
from types import CodeType
from typing import Any

import msgspec

from gossamer_ir.errors import ScheduleError
from gossamer_ir.interchange.records import Arg, Intrinsic
from gossamer_ir.script.namespace import VScaleMultiple
from gossamer_schedule.definition.choices import choice_type, expected_words, words_of
from gossamer_schedule.errors import listing, schedule_error
from gossamer_support.message_texts import amount, nearest

INTRINSICS = "intrinsics"
"""The argument of primitives that need the intrinsics of a machine."""
_NOT_ARGUMENTS = ("root", INTRINSICS, "return")
"""Parameters and annotations of a primitive that are not arguments of its step."""
_TYPES_BY_ANNOTATION: dict[str, Any] = {
    "int": int,
    "str": str,
    "str | None": str | None,
    "int | None": int | None,
    "int | str": int | str,
    "int | str | None": int | str | None,
    "bool": bool,
    "bool | int | str": bool | int | str,
    "tuple[int, ...]": tuple[int, ...],
    "tuple[int, ...] | None": tuple[int, ...] | None,
    "tuple[int | None, ...] | None": tuple[int | None, ...] | None,
    "tuple[str, ...]": tuple[str, ...],
    "tuple[int | str, ...]": tuple[int | str, ...],
    "tuple[int | str | None, ...]": tuple[int | str | None, ...],
}
"""The types of arguments by the text of their annotation, except closed sets of words. Evaluating annotations
takes longer than applying a schedule."""


def op_of(primitive: Callable[..., Any]) -> str:
    """Return the name that steps give a primitive: `name`, or `plugin.name` for one of a plugin.

    >>> from gossamer_schedule import reorder
    >>> op_of(reorder)
    'reorder'
    """
    op: str = vars(primitive)["op"]
    return op


@cache
def variadic_argument(primitive: Callable[..., Any]) -> str | None:
    """Return the variadic argument of a primitive, which is a tuple in a step; None if there is none.

    >>> from gossamer_schedule import reorder
    >>> variadic_argument(reorder)
    'loops'
    """
    code = unwrap(primitive).__code__
    count = code.co_argcount + code.co_kwonlyargcount
    return code.co_varnames[count] if code.co_flags & CO_VARARGS else None


def arguments_by_name(primitive: Callable[..., Any], args: tuple[Any, ...]) -> dict[str, Any]:
    """Return the positional arguments after the module by their names in a step.

    Raises `ScheduleError`: `schedule.replay.arguments` (more than are taken by position).

    >>> from gossamer_schedule import reorder, split
    >>> arguments_by_name(reorder, ("k", "j"))
    {'loops': ('k', 'j')}
    >>> arguments_by_name(split, ("k",))
    {'loop': 'k'}
    """
    variadic = variadic_argument(primitive)
    if variadic:
        return {variadic: args}
    names = _positional_names(primitive) if args else ()
    if len(args) > len(names):
        raise _positional_error(primitive, args, len(names))
    return dict(zip(names, args, strict=False))


@cache
def _positional_names(primitive: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names of the arguments after the module that a primitive takes by position."""
    code: CodeType = unwrap(primitive).__code__
    return code.co_varnames[1 : code.co_argcount]


@cache
def takes_intrinsics(primitive: Callable[..., Any]) -> bool:
    """Return whether a primitive needs the intrinsics of a machine."""
    return INTRINSICS in unwrap(primitive).__kwdefaults__


def _positional_error(
    primitive: Callable[..., Any], args: tuple[Any, ...], count: int
) -> ScheduleError:
    """Return the error for arguments that must be given by name. Its hint shows the right call."""
    op = op_of(primitive)
    types, _ = argument_types(primitive)
    names = list(types)[: len(args)]
    shown = [
        repr(value) if number < count else f"{name}={value!r}"
        for number, (name, value) in enumerate(zip(names, args, strict=False))
    ]
    hint = f"Write {op}({', '.join(shown)})." if len(names) == len(args) else ""
    pairs = zip(names, args, strict=False)
    if not hint or "function" in names or not all(_is_of_type(x, types[name]) for name, x in pairs):
        hint = f"{listing('arguments', types)}{_argument_hint(op)}"
    message = f"{op} takes {amount(count, 'argument')} by position."
    return schedule_error("replay.arguments", message, hint=hint)


def checked_arguments(
    primitive: Callable[..., Any], by_name: Mapping[str, Any], keywords: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the arguments of a primitive by name, converted to their types: lists to tuples, NumPy integers
    to Python ints. Intrinsics among the `keywords` are not converted.

    Raises `ScheduleError`: `schedule.replay.arguments` (missing, unknown, twice, or of a wrong type), and
    `schedule.<op>.<name>` for a word that is not one of those that the annotation lists.

    >>> from gossamer_schedule import split
    >>> checked_arguments(split, {"loop": "i"}, {"factors": [None, 8]})
    {'loop': 'i', 'factors': (None, 8)}
    """
    types, required = argument_types(primitive)
    op, variadic = op_of(primitive), variadic_argument(primitive)
    rest, intrinsics = dict(keywords), {}
    # Intrinsics belong to the machine, not to the step, so they have no type that a trace could hold.
    if INTRINSICS in rest and takes_intrinsics(primitive):
        intrinsics[INTRINSICS] = _checked_intrinsics(op, rest.pop(INTRINSICS))
    for name in rest:
        if name not in types:
            raise _unknown_argument_error(op, name, list(types))
        # An empty variadic argument is that of a call by keywords, which may give it.
        if name in by_name and (by_name[name] or name != variadic):
            raise schedule_error("replay.arguments", f"{op} is given argument '{name}' twice.")
    by_name = {**by_name, **rest}
    for name in required:
        if name not in by_name:
            raise schedule_error(
                "replay.arguments",
                f"{op} needs argument '{name}'.",
                hint=listing("arguments", types),
            )
    arguments = {
        name: _converted_value(op, name, value, types[name]) for name, value in by_name.items()
    }
    return arguments | intrinsics


def _checked_intrinsics(op: str, value: Any) -> Any:
    if isinstance(value, Sequence) and all(isinstance(item, Intrinsic) for item in value):
        return value
    raise schedule_error(
        "replay.arguments",
        f"The intrinsics for {op} are {value_text(value)}, which is not a sequence of intrinsics.",
    )


def _unknown_argument_error(op: str, name: str, names: list[str]) -> ScheduleError:
    near = nearest(name, names)
    hint = _argument_hint(op, name) or (f" Did you mean '{near}'?" if near else "")
    return schedule_error(
        "replay.arguments",
        f"{op} has no argument '{name}'.",
        hint=f"{listing('arguments', names)}{hint}",
    )


def _converted_value(op: str, name: str, value: Any, expected: Any) -> Any:
    # Before the conversion, whose error does not list the words, and has no code of the primitive.
    words = words_of(expected)
    if words and isinstance(value, str) and value not in words:
        raise schedule_error(
            f"{op}.{name}",
            f"{op} does not support {name}={value_text(value)}.",
            hint=expected_words(value, words),
        )
    try:
        return msgspec.convert(normalized_value(value), expected)
    except (msgspec.ValidationError, TypeError, UnicodeError, RecursionError) as error:
        raise schedule_error(
            "replay.arguments",
            f"Argument '{name}' of {op} is {value_text(value)}, which has the wrong type.",
            hint=f"{error}.{_argument_hint(op, name)}".replace("`array`", "a list or tuple"),
        ) from None


def _argument_hint(op: str, name: str | None = None) -> str:
    from gossamer_schedule.foreign_names.hints import argument_hint  # only errors need the tables

    return argument_hint(op, name)


def _is_of_type(value: Any, expected: Any) -> bool:
    try:
        msgspec.convert(normalized_value(value), expected)
    except (msgspec.ValidationError, TypeError, UnicodeError, RecursionError):
        return False
    return True


def recorded_arguments(primitive: Callable[..., Any], values: Mapping[str, Arg]) -> dict[str, Arg]:
    """Return the arguments of a step in the order of the primitive's parameters, without defaults.

    >>> from gossamer_schedule import sample_perfect_tile
    >>> recorded_arguments(sample_perfect_tile, {"parts": 2, "name": "t", "loop": "i", "largest": 64})
    {'loop': 'i', 'name': 't', 'parts': 2}
    """
    types, _ = argument_types(primitive)
    defaults = unwrap(primitive).__kwdefaults__
    # Without defaults: a trace is then the same, whether or not its author wrote them.
    return {
        name: values[name]
        for name in types
        if name in values and not (name in defaults and values[name] == defaults[name])
    }


_MAX_VALUE_LENGTH = 80
"""Maximum length of a value that messages show in full."""


def value_text(value: object) -> str:
    """Return a value as messages show it: its text, or its type if that is too long.

    >>> value_text("i"), value_text(object())
    ("'i'", 'a value of type object')
    """
    # The `repr` of other objects may be long, or fail.
    text = repr(value) if isinstance(value, (str, int, float, bytes, tuple, list)) else ""
    return text if 0 < len(text) <= _MAX_VALUE_LENGTH else f"a value of type {type(value).__name__}"


def normalized_value(value: Any) -> Any:
    """Return a value with lists as tuples, with integers of other types, such as NumPy's, as ints, and with
    multiples of `T.vscale()` as their texts.

    >>> import numpy as np
    >>> from gossamer_ir.script import T
    >>> normalized_value([None, np.int64(8), T.vscale() * 4])
    (None, 8, '4 * T.vscale()')
    """
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, (list, tuple)):
        return tuple(map(normalized_value, value))
    if isinstance(value, VScaleMultiple):
        return repr(value)
    if isinstance(value, Set):  # msgspec would convert a set to a tuple, in arbitrary order
        raise TypeError("Expected `array`, got `set`")
    # NumPy's integers have an `__index__`; its floats do not, and are refused by their type.
    try:
        return index(value)
    except TypeError:
        return value


@cache
def argument_types(primitive: Callable[..., Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the types of a primitive's arguments by name, and the names of those that are required."""
    function: Any = unwrap(primitive)
    hints, variadic = function.__annotations__, variadic_argument(primitive)
    types = {
        name: _declared_type(hints[name], function) for name in hints if name not in _NOT_ARGUMENTS
    }
    if variadic:
        types[variadic] = _TYPES_BY_ANNOTATION[f"tuple[{_annotation_text(hints[variadic])}, ...]"]
    return types, [name for name in types if name not in function.__kwdefaults__]


def _declared_type(annotation: Any, function: Any) -> Any:
    """Return the type of an argument by its annotation; None if steps cannot hold it."""
    declared = _TYPES_BY_ANNOTATION.get(_annotation_text(annotation))
    return choice_type(annotation, function.__globals__) if declared is None else declared


def choices_of(primitive: Callable[..., Any], name: str) -> tuple[str, ...]:
    """Return the words that an argument of a primitive may be.

    >>> from gossamer_schedule import vectorize
    >>> choices_of(vectorize, "remainder")
    ('masked', 'scalar')
    """
    return words_of(argument_types(primitive)[0][name])


def _annotation_text(annotation: Any) -> str:
    """Return an annotation as it is written. It is a text already, unless a plugin evaluates annotations."""
    if isinstance(annotation, str):
        return annotation
    return annotation.__name__ if isinstance(annotation, type) else str(annotation)


def require_declared_arguments(primitive: Callable[..., Any]) -> None:
    """Raise `TypeError` unless the signature of a primitive declares types that steps can hold, and the
    keyword `function`.

    >>> def flip(root, loop: float, *, function: str | None = None): ...
    >>> require_declared_arguments(flip)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    TypeError: the argument 'loop' of flip is of type float; expected one of int, str, str | None, ...
    """
    code: CodeType = unwrap(primitive).__code__
    hints, defaults = unwrap(primitive).__annotations__, unwrap(primitive).__kwdefaults__ or {}
    variadic = variadic_argument(primitive)
    if "function" not in defaults:
        raise TypeError(f"{primitive.__name__} has no keyword 'function: str | None = None'")
    _, *names = code.co_varnames[
        : code.co_argcount + code.co_kwonlyargcount + (variadic is not None)
    ]
    for name in names:
        declared = hints.get(name, "not declared")
        text = _annotation_text(declared)
        wanted = f"tuple[{text}, ...]" if name == variadic else declared
        if name not in _NOT_ARGUMENTS and _declared_type(wanted, unwrap(primitive)) is None:
            raise TypeError(
                f"the argument '{name}' of {primitive.__name__} is of type {text}; expected one of "
                f"{', '.join(_TYPES_BY_ANNOTATION)}, Literal[...]"
            )
