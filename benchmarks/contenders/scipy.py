"""SciPy's products, on one thread, with allocated results. For attention, NumPy computes the scores and
their softmax first."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from benchmarks.contenders.contender import Prepared
from benchmarks.operator_case import OperatorCase

if TYPE_CHECKING:
    # Interpreters of other contenders have no gossamer.
    from gossamer_support.arrays import Array


def prepare(case: OperatorCase, threads: int) -> Prepared:
    """Return the call `matrix @ operand`, with the matrix in the format of the problem."""
    del threads
    call = CALLS[case.op](case)
    return Prepared(call, result=call)


def product_by_scipy(case: OperatorCase) -> Callable[[], Array]:
    """Compute the product with a matrix or a vector."""
    (operand,), matrix = case.operands, case.stored
    return lambda: np.asarray(matrix @ operand)


def attention_by_scipy(case: OperatorCase) -> Callable[[], Array]:
    """Compute attention as the command `gossamer run` does beside gossamer."""
    from gossamer.cli.comparison.baselines.attention import prepare_attention

    return prepare_attention(sparse.csr_array(case.csr), *case.operands)


CALLS: dict[str, Callable[[OperatorCase], Callable[[], Array]]] = {
    "spmm": product_by_scipy,
    "spmv": product_by_scipy,
    "bsr_spmm": product_by_scipy,
    "attention": attention_by_scipy,
}
