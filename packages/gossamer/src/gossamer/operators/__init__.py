"""The operators, one file each: a script, and the function that calls its kernels."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from inspect import signature
from types import ModuleType
from typing import TYPE_CHECKING, Any

from gossamer.operators.operator import Operator
from gossamer_backend.fork import compiling
from gossamer_ir.errors import ArgumentError

if TYPE_CHECKING:
    from gossamer.operators.operands import Operands
    from gossamer_formats import Array

NAMES = ("spmm", "spmv", "sddmm", "attention")
"""The operators in the order in which they are listed."""


def operator_named(name: str) -> Operator:
    """Return the operator of a name; `ArgumentError` (`operator.unknown`) lists the known ones."""
    found: Operator = _module_named(name).OPERATOR
    return found


def function_named(name: str) -> Callable[..., Array]:
    """Return the function that calls the operator of a name; errors as those of `operator_named`."""
    found: Callable[..., Array] = getattr(_module_named(name), name)
    return found


def operands_of(name: str, *given: Any) -> Operands:
    """Check the operands of a call of the operator of a name; raise `ArgumentError` (`operator.operands`) if
    it takes another number of operands."""
    check = _module_named(name).operands
    parameters = signature(check).parameters
    wanted = tuple(name for name, found in parameters.items() if found.default is found.empty)
    if not len(wanted) <= len(given) <= len(parameters):
        raise ArgumentError(
            "operator.operands",
            f"The number of operands of {name} is {len(given)}; expected {len(wanted)}: "
            f"{', '.join(wanted)}.",
        )
    operands: Operands = check(*given)
    return operands


def _module_named(name: str) -> ModuleType:
    if name not in NAMES:
        raise ArgumentError(
            "operator.unknown", f"'{name}' is not an operator; expected one of {', '.join(NAMES)}."
        )
    with compiling:
        return import_module(f"gossamer.operators.{name}")
