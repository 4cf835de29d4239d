"""Options that several commands share, and their checks."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated, Any, TypeAlias

import numpy as np
import typer

from gossamer.cli.comparison.baselines import baseline_of
from gossamer.operators import NAMES
from gossamer_formats import SparseTensor
from gossamer_formats.internal_api import WIDE_DTYPES, available_memory
from gossamer_ir.errors import ArgumentError
from gossamer_support.message_texts import either, readable_size

FEATURES = 64
"""The default number of columns of dense matrices."""

OPERATOR_NAMES = ", ".join(NAMES)


def integer_option(name: str, *, help: str) -> Any:
    """Return an integer option whose error message has the invalid value."""
    return typer.Option(name, parser=_integer_of(name), metavar="<int>", help=help)


def _integer_of(name: str) -> Callable[[object], int]:
    def parse(text: object) -> int:
        try:
            return int(str(text))
        except ValueError:
            raise ArgumentError(
                "option.integer", f"{name} is '{text}'; expected an integer."
            ) from None

    return parse


Features: TypeAlias = Annotated[int, integer_option("--features", help="columns of dense matrices")]
Threads: TypeAlias = Annotated[
    int | None, integer_option("--threads", help="threads; all CPUs if not given")
]
TargetName: TypeAlias = Annotated[
    str, typer.Option("--target", "--backend", help="see gossamer backends")
]
MaxBytes: TypeAlias = Annotated[
    int | None,
    integer_option("--max-bytes", help="bound of the memory for reading the matrix"),
]


def require_dtype_option(dtype: str) -> None:
    """Raise unless the dtype is float32 or float64."""
    if dtype not in WIDE_DTYPES:
        raise ArgumentError(
            "option.dtype", f"--dtype is '{dtype}'; expected {either(WIDE_DTYPES)}."
        )


def require_range(option: str, value: int, *, low: int, high: int | None = None) -> None:
    """Raise unless the value is from low to high."""
    if value >= low and (high is None or value <= high):
        return
    expected = f"{low} or more" if high is None else f"{low} to {high}"
    raise ArgumentError("option.range", f"{option} is {value}; expected {expected}.")


def require_operator_memory(op: str, matrix: SparseTensor, *, features: int, dtype: str) -> None:
    """Raise if the operands, the result and that of SciPy do not fit into the available memory."""
    rows, columns = matrix.shape
    baseline = baseline_of(op)
    dense = baseline.operand_shapes(matrix.shape, features)
    result = baseline.result_shape(matrix.shape, matrix.nnz, features)
    needed = sum(map(math.prod, (*dense, result, result))) * np.dtype(dtype).itemsize
    if needed > available_memory():
        raise ArgumentError(
            "option.memory",
            f"The operands and results for a matrix of {rows} by {columns} and --features {features} take "
            f"{readable_size(needed)}, more than the memory that is available.",
            hint="Give fewer --features.",
        )
