"""The operators by name."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from gossamer_backend.internal_api import compiling
from gossamer_ir.errors import ArgumentError

if TYPE_CHECKING:
    from gossamer.operator_calls.operator import Operator

NAMES = ("spmm", "spmv", "sddmm", "attention")
"""The operators in the order in which they are listed."""


def product_names() -> tuple[str, ...]:
    """Return the operators that multiply a matrix: formats are chosen for them."""
    return tuple(name for name in NAMES if operator_named(name).program.sums_rows)


def operator_named(name: str) -> Operator[...]:
    """Return the operator of a name; `ArgumentError` (`operator.unknown`) lists the known ones."""
    if name not in NAMES:
        raise ArgumentError(
            "operator.unknown", f"'{name}' is not an operator; expected one of {', '.join(NAMES)}."
        )
    with compiling:
        operator: Operator[...] = getattr(import_module(f"gossamer.operators.{name}"), name)
    return operator
