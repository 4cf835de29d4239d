"""The form of the schedule of a matrix in CSR times a dense matrix, by its sizes.

The rule `row_spmm` schedules the form, and the model of the cost of CSR expects it.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from gossamer_heuristics.operand_copies import row_packing
from gossamer_heuristics.row_lengths import has_partial_sums
from gossamer_heuristics.thread_copies import thread_tile_packing
from gossamer_ir.core.dtypes import DType
from gossamer_ir.interchange.records import Stats
from gossamer_machine.machine import Machine

CsrForm: TypeAlias = Literal["packed_sums", "sums", "packed_tiles", "gathered_rows"]
"""Several partial sums of each row, from rows of the dense operand that are packed or not; tiles of features,
which each thread packs; or tiles of features whose rows are read where they are."""


def csr_form(
    features: int | None,
    dtype: str,
    machine: Machine,
    stats: Stats | None,
    *,
    may_pack: bool = True,
) -> CsrForm:
    """Return the form for this many features (None: symbolic) and a matrix (None: unknown). Unless it
    `may_pack`, it is one of those without packing.

    >>> matrix = Stats(rows=4096, columns=4096, nnz=64 * 4096, longest_row=80, empty_rows=0)
    >>> machine = Machine(cores=2)
    >>> [csr_form(features, "float32", machine, matrix) for features in (16, 64, 512)]
    ['packed_sums', 'gathered_rows', 'packed_tiles']
    >>> [csr_form(features, "float32", machine, matrix, may_pack=False) for features in (16, 512)]
    ['sums', 'gathered_rows']
    """
    if features is None or stats is None:
        return "gathered_rows"
    row_bytes = features * DType.parse(dtype).bits // 8
    is_packed = may_pack and row_packing(row_bytes, machine, stats).is_profitable
    if has_partial_sums(features, dtype, machine, stats, is_packed=is_packed):
        return "packed_sums" if is_packed else "sums"
    # Tiles that are packed have more features than partial sums, so that the order does not matter.
    if may_pack and thread_tile_packing(features, dtype, machine, stats).is_profitable:
        return "packed_tiles"
    return "gathered_rows"
