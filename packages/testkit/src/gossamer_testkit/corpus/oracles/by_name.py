"""The oracles for programs of the corpus, by the names that manifests use. They use only NumPy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from gossamer_testkit.corpus.case import Expected, Values
from gossamer_testkit.corpus.oracles.elementwise_results import casts, elementwise
from gossamer_testkit.corpus.oracles.program_results import RESULTS_OF_PROGRAMS
from gossamer_testkit.corpus.oracles.sparse_results import (
    bitmask,
    bsr,
    csr_row_sums,
    csrmm,
    csrmv,
    dcsr,
    elements,
    ell,
    row_groups,
    sddmm,
    segment_sums,
    tiled_csr,
)

Oracle: TypeAlias = Callable[[Values, Mapping[str, Any]], dict[str, Expected]]

ORACLES: dict[str, Oracle] = {
    **RESULTS_OF_PROGRAMS,
    "bsr": bsr,
    "casts": casts,
    "bitmask": bitmask,
    "csrmm": csrmm,
    "csrmv": csrmv,
    "dcsr": dcsr,
    "elements": elements,
    "elementwise": elementwise,
    "ell": ell,
    "row_groups": row_groups,
    "row_sums": csr_row_sums,
    "sddmm": sddmm,
    "segment_sums": segment_sums,
    "tiled_csr": tiled_csr,
}
