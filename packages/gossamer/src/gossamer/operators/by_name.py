"""The operators by name."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from gossamer_ir.errors import ArgumentError

if TYPE_CHECKING:
    from gossamer.operator_calls.operator import Operator

NAMES = ("spmm", "spmv", "sddmm", "attention")
"""The operators of any sparse matrix, in the order in which they are listed."""

N_M_NAMES = ("matmul_24",)
"""The operators of N:M matrices. `gossamer run` offers only the others, with any matrix."""

ALL_NAMES = (*NAMES, *N_M_NAMES)


def product_names() -> tuple[str, ...]:
    """Return the operators that multiply a matrix: formats are chosen for them."""
    return tuple(name for name in NAMES if operator_named(name).program.sums_rows)


def is_operator_name(program: object) -> bool:
    """Return whether a program is the name of an operator.

    >>> is_operator_name("matmul_24"), is_operator_name("def matmul_24(): pass")
    (True, False)
    """
    return isinstance(program, str) and program in ALL_NAMES


def operator_named(name: str, *, among: tuple[str, ...] = ALL_NAMES) -> Operator[...]:
    """Return the operator of a name; `ArgumentError` (`operator.unknown`) lists those that may be named."""
    if name not in among:
        raise ArgumentError(
            "operator.unknown",
            f"'{name}' is not an operator; expected one of {', '.join(among)}.",
        )
    operator: Operator[...] = getattr(import_module(f"gossamer.operators.{name}"), name)
    return operator
