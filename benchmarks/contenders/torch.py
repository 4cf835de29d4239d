"""PyTorch's products and `sampled_addmm`.

Products write to a given output: `addmm` and `addmv` with beta = 0, for CSR and BSR, are faster than
`sparse.mm`; `sampled_addmm` works in place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import torch

from benchmarks.contenders.contender import ContenderCall, Prepared, UnavailableError
from benchmarks.operator_case import OperatorCase

if TYPE_CHECKING:
    # Interpreters of other contenders have no gossamer.
    from gossamer_support.arrays import Array

NOT_WRITTEN = 1e30
"""Fills the result of a sampled product before the call, which multiplies it by beta = 0: NaN would stay."""


def prepare(case: OperatorCase, threads: int) -> Prepared:
    """Prepare the call, and make it once, since torch refuses at the first call."""
    torch.set_num_threads(threads)
    try:
        call, result = call_of(case)
        call()
    except RuntimeError as error:
        first = str(error).partition("\n")[0]
        raise UnavailableError(f"torch does not do this: {first}") from None
    return Prepared(call, partial(torch.set_num_threads, threads), result)


def call_of(case: OperatorCase) -> tuple[ContenderCall, Callable[[], Array] | None]:
    """Return the call, and a function that makes it and returns the result (None: `case.out`)."""
    stored: Any = case.stored
    arrays = map(torch.from_numpy, (stored.indptr, stored.indices, stored.data))
    make = torch.sparse_csr_tensor if case.bsr is None else torch.sparse_bsr_tensor
    matrix = make(*arrays, size=stored.shape)
    operands = [torch.from_numpy(operand) for operand in case.operands]
    return CALLS[case.op](matrix, operands, torch.from_numpy(case.out))


def product_by_torch(matrix: Any, operands: Sequence[Any], out: Any) -> tuple[ContenderCall, None]:
    """Compute a product with a matrix or a vector."""
    add: Any = torch.addmv if out.ndim == 1 else torch.addmm
    return partial(add, out, matrix, operands[0], beta=0, out=out), None


def sampled_product_of(
    matrix: Any, operands: Sequence[Any], out: Any
) -> tuple[ContenderCall, Callable[[], Array]]:
    """Return a call that works in place: with another output torch would copy the pattern into it."""
    del out
    left, right = operands[0], operands[1].t()
    call = partial(torch.sparse.sampled_addmm, matrix, left, right, beta=0.0, out=matrix)

    def result() -> Array:
        matrix.values().fill_(NOT_WRITTEN)
        call()
        values: Array = matrix.values().numpy()
        return values

    return call, result


def attention_by_torch(
    matrix: Any, operands: Sequence[Any], out: Any
) -> tuple[ContenderCall, None]:
    """Compute attention: sampled products in place, a softmax by segment reductions, a product."""
    q, k, v = operands
    indptr, indices = matrix.crow_indices(), matrix.col_indices()
    rows = torch.repeat_interleave(torch.arange(len(indptr) - 1), indptr.diff())
    offsets, transposed, scale = indptr.long(), k.t(), q.shape[1] ** -0.5

    def attend() -> None:
        torch.sparse.sampled_addmm(matrix, q, transposed, beta=0.0, alpha=scale, out=matrix)
        scores = matrix.values()
        most = torch.segment_reduce(scores, "max", offsets=offsets)
        powers = torch.exp(scores - most[rows])
        total = torch.segment_reduce(powers, "sum", offsets=offsets)
        shares = torch.sparse_csr_tensor(indptr, indices, powers / total[rows], size=matrix.shape)
        torch.addmm(out, shares, v, beta=0, out=out)

    return attend, None


CALLS: dict[str, Callable[..., tuple[ContenderCall, Callable[[], Array] | None]]] = {
    "spmm": product_by_torch,
    "spmv": product_by_torch,
    "bsr_spmm": product_by_torch,
    "sddmm": sampled_product_of,
    "attention": attention_by_torch,
}
