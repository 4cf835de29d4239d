"""Argument checks of public functions: arguments of wrong types raise `ArgumentError`."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import wraps
from inspect import Parameter, signature, unwrap
from types import NoneType, UnionType
from typing import Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin

from gossamer_support.errors import ArgumentError, GossamerError

P = ParamSpec("P")
R = TypeVar("R")

_NUMBERS = {int: numbers.Integral, float: numbers.Real}
"""The types accepted for a number: those of NumPy as well, and integers for a float."""
_MAX_REPR_LENGTH = 60
"""The longest `repr` of a value that an error message shows."""


def typed(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function so that invalid arguments raise `ArgumentError`: `argument.type` if one is not of
    the declared type, `argument.names` if one is missing or unknown.

    Types are checked only after a call has failed, since evaluating annotations takes longer than most
    calls. Errors of gossamer itself pass through.

    >>> @typed
    ... def twice(text: str) -> str:
    ...     return text.upper() * 2
    >>> twice("ab")
    'ABAB'
    >>> twice(12)
    Traceback (most recent call last):
    ...
    gossamer_support.errors.ArgumentError: Argument 'text' of 'twice' is 12; expected str. [argument.type]
    """

    @wraps(function)
    def wrapper(*args: P.args, **keywords: P.kwargs) -> R:
        try:
            return function(*args, **keywords)
        # The function has found the mistake itself, and says more about it.
        except GossamerError:
            raise
        # An argument of a wrong type may raise anything: an AttributeError, a KeyError, an error of a
        # library. An error of the body is not mistaken for one, since the answer depends on the arguments
        # only: it is raised again if all of them have their declared types.
        except Exception as error:
            rejection = _argument_error(function, args, keywords)
            if rejection is None:
                raise
            raise rejection from error

    return wrapper


def _argument_error(
    function: Callable[..., Any], args: tuple[Any, ...], keywords: dict[str, Any]
) -> ArgumentError | None:
    """Return the error for arguments that a function does not accept; None if it accepts them."""
    name, declared = function.__qualname__.removesuffix(".__init__"), signature(function)
    try:
        bound = declared.bind(*args, **keywords)
    except TypeError as error:
        return ArgumentError(
            "argument.names",
            f"Invalid call of '{name}': {error}.",
            hint=f"Its arguments are {', '.join(declared.parameters)}.",
        )
    for parameter, values in bound.arguments.items():
        wanted = _type_of(declared.parameters[parameter], function)
        for value in _argument_values(values, declared.parameters[parameter].kind):
            if not conforms_to(value, wanted):
                return ArgumentError(
                    "argument.type",
                    f"Argument '{parameter}' of '{name}' is {_value_text(value)}; "
                    f"expected {_type_text(wanted)}.",
                )
    return None


def _type_of(parameter: Parameter, function: Any) -> Any:
    """Return the declared type of a parameter; `Any` if it does not exist at run time."""
    declared = parameter.annotation
    if not isinstance(declared, str):
        return Any if declared is parameter.empty else declared
    try:
        return eval(declared, unwrap(function).__globals__)
    except (NameError, TypeError):  # the name is imported under TYPE_CHECKING only
        return Any


def _argument_values(values: Any, kind: Any) -> Iterable[Any]:
    if kind is Parameter.VAR_POSITIONAL:
        return tuple(values)
    return tuple(values.values()) if kind is Parameter.VAR_KEYWORD else (values,)


def conforms_to(value: object, wanted: Any) -> bool:
    """Return whether a value conforms to an annotation, or if the annotation cannot be checked at run time.

    >>> pair = tuple[int, ...]
    >>> conforms_to((1, 2), pair), conforms_to((1, "2"), pair), conforms_to(None, int | None)
    (True, False, True)
    """
    origin, of = get_origin(wanted), get_args(wanted)
    if origin in (Union, UnionType):
        return any(conforms_to(value, one) for one in of)
    if origin is Literal:
        # True == 1, but a bool is not one of Literal[1, 2].
        return any(type(value) is type(one) and value == one for one in of)
    if isinstance(wanted, TypeVar):
        return wanted.__bound__ is None or conforms_to(value, wanted.__bound__)
    if wanted is None:
        return value is None
    home = _NUMBERS.get(wanted, wanted) if origin is None else origin
    # Such as a Callable or a NewType, which cannot be checked at run time.
    if not isinstance(home, type):
        return True
    try:
        is_instance = isinstance(value, home)
    except TypeError:  # a protocol without @runtime_checkable
        return True
    return is_instance and all(conforms_to(item, one) for item, one in _elements(value, of))


def _elements(value: Any, of: tuple[Any, ...]) -> Iterator[tuple[object, Any]]:
    """Yield the elements of a container, each with its declared type."""
    if isinstance(value, tuple) and of:
        yield from (
            ((item, of[0]) for item in value) if of[-1] is ... else zip(value, of, strict=False)
        )
    elif isinstance(value, Mapping) and len(of) == 2:
        yield from ((key, of[0]) for key in value)
        yield from ((member, of[1]) for member in value.values())
    elif isinstance(value, (Collection, bytes)) and not isinstance(value, str) and len(of) == 1:
        yield from ((item, of[0]) for item in value)


def _value_text(value: object) -> str:
    if (
        not isinstance(value, (str, bytes, int, float, NoneType))
        or len(repr(value)) > _MAX_REPR_LENGTH
    ):
        return f"of type {type(value).__name__}"
    return repr(value)


def _type_text(wanted: Any) -> str:
    """Return a type as text, without module names."""
    origin, of = get_origin(wanted), get_args(wanted)
    if origin in (Union, UnionType):
        return " or ".join(map(_type_text, of))
    if origin is Literal:
        return " or ".join(map(repr, of))
    if wanted is Ellipsis:
        return "..."
    if wanted in (None, NoneType):
        return "None"
    name = getattr(origin or wanted, "__name__", str(wanted))
    return f"{name}[{', '.join(map(_type_text, of))}]" if of else name
