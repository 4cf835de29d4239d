"""The operators of gossamer that parts measure in fresh processes, and what these need to know of them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from gossamer.operators import NAMES, operator_named

PROCESSES, FEW_PROCESSES = 5, 3
"""The fresh processes of an operator, and those of a quick run."""


def processes_of(chosen: argparse.Namespace) -> int:
    """Return the number of fresh processes in which an operator is measured."""
    return FEW_PROCESSES if chosen.quick else PROCESSES


def shared_operators(ops: Sequence[str]) -> list[str]:
    """Return the measured operators that gossamer has under the same name."""
    return [op for op in ops if op in NAMES]


def another_operator(op: str) -> str:
    """Return another operator, whose kernel a process has built before that of an operator is measured.

    >>> another_operator("spmm"), another_operator("sddmm")
    ('spmv', 'spmm')
    """
    return next(name for name in NAMES if name != op)


def takes_vectors(op: str) -> bool:
    """Return whether the dense operands of an operator are vectors.

    >>> takes_vectors("spmv"), takes_vectors("spmm")
    (True, False)
    """
    return operator_named(op).program.dense_dimensions == 1


def features_of(op: str, features: int) -> int:
    """Return the number of columns of the dense operands: that number, or 1 for vectors."""
    return 1 if takes_vectors(op) else features
