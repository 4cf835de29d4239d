"""SciPy's products, on one thread, with allocated results. For attention, NumPy computes the scores and
their softmax first."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import sparse

from benchmarks.contenders.contender import Prepared
from benchmarks.operator_case import Array, OperatorCase


def prepare(case: OperatorCase, threads: int) -> Prepared:
    """`matrix @ operand`, with the matrix in the format of the problem."""
    del threads
    call = product(case)
    return Prepared(call, result=call)


def product(case: OperatorCase) -> Callable[[], Array]:
    """Return the product of the case."""
    if case.op == "attention":
        from gossamer.cli.bench.baselines.attention import prepare_attention

        return prepare_attention(sparse.csr_array(case.csr), *case.operands)
    (operand,) = case.operands
    matrix = case.csr if case.bsr is None else case.bsr
    return lambda: np.asarray(matrix @ operand)
