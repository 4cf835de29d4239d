"""The operators, one file each: a script and the function that calls its kernels."""

from __future__ import annotations

from importlib import import_module

from gossamer.operators.operator import Operator
from gossamer_backend.exclusion import compiling
from gossamer_ir.errors import ArgumentError

NAMES = ("spmm", "spmv")


def operator_named(name: str) -> Operator:
    """The operator of a name; `ArgumentError` (`operator.unknown`) lists those there are."""
    if name not in NAMES:
        raise ArgumentError(
            "operator.unknown", f"'{name}' is no operator; there are: {', '.join(NAMES)}."
        )
    with compiling:
        found: Operator = import_module(f"gossamer.operators.{name}").OPERATOR
    return found
