"""Checks the arguments of `run` against the parameters of the function."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import numpy as np

from gossamer_ir.core.dtypes import DType
from gossamer_ir.core.encodings import encoding_of
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interpret.memory.values import numpy_type
from gossamer_ir.nodes import Function, Param

Argument: TypeAlias = Any


def bind_arguments(function: Function, arguments: Mapping[str, Argument]) -> list[Any]:
    """Return one value or array for each parameter, in order; raises `ArgumentError` if they do not match."""
    names = [param.name for param in function.params]
    _require_same(names, arguments, function=function.name)
    return [_bind(param, arguments[param.name]) for param in function.params]


def _require_same(names: list[str], arguments: Iterable[str], *, function: str) -> None:
    missing = [name for name in names if name not in arguments]
    unknown = [name for name in arguments if name not in names]
    if not missing and not unknown:
        return
    state = "is missing" if missing else "is unknown"
    raise ArgumentError(
        f"interpret.{'missing' if missing else 'unknown'}_argument",
        f"The argument '{(missing or unknown)[0]}' of '{function}' {state}.",
        hint=f"Its parameters are {', '.join(names) or 'none'}.",
    )


def _bind(param: Param, argument: Argument) -> Any:
    if param.dtype == "handle":
        if not isinstance(argument, np.ndarray):
            raise _argument_error(param, argument, "an array")
        return argument
    return _scalar(param, argument)


def _scalar(param: Param, argument: Argument) -> Any:
    dtype = DType.parse(param.dtype)
    allowed: tuple[type[Any], ...] = (int, np.integer, np.bool_)
    allowed = (int, float, np.number) if dtype.is_float else allowed
    if not isinstance(argument, allowed):
        raise _argument_error(param, argument, f"a scalar of {param.dtype}")
    try:
        value = numpy_type(param.dtype)(argument)
    except OverflowError:
        raise _argument_error(param, argument, f"a scalar of {param.dtype}") from None
    if dtype.is_integer and value != argument:
        raise _argument_error(param, argument, f"a scalar of {param.dtype}")
    encoding = encoding_of(param.dtype)
    return value if encoding is None else encoding.round(value)


def _argument_error(param: Param, argument: Argument, expected: str) -> ArgumentError:
    what = type(argument).__name__ if isinstance(argument, np.ndarray) else repr(argument)
    return ArgumentError(
        "interpret.argument", f"The argument '{param.name}' is {what}; expected {expected}."
    )
