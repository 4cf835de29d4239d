"""The input generators for programs of the corpus, by the names that manifests use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from gossamer_testkit.corpus.case import Case
from gossamer_testkit.corpus.inputs.csr_inputs import spmm_cases, spmv_cases
from gossamer_testkit.corpus.inputs.fact_inputs import (
    distinct_cases,
    fact_cases,
    product_cases,
    relation_cases,
)
from gossamer_testkit.corpus.inputs.format_inputs import (
    bitmask_cases,
    bsr_cases,
    dcsr_cases,
    elements_cases,
    ell_cases,
    row_groups_cases,
    row_sums_cases,
    sddmm_cases,
    segment_sums_cases,
    tiled_csr_cases,
)
from gossamer_testkit.corpus.inputs.guards import guard_cases
from gossamer_testkit.corpus.inputs.pairs import cast_values, pairs, truths
from gossamer_testkit.corpus.inputs.scalar_inputs import scalar_values
from gossamer_testkit.corpus.inputs.searches import search_cases
from gossamer_testkit.corpus.inputs.vectors import vectors
from gossamer_testkit.corpus.inputs.weights import weight_cases

InputGenerator: TypeAlias = Callable[[Mapping[str, Any]], Iterator[Case]]

INPUT_GENERATORS: dict[str, InputGenerator] = {
    "bsr_cases": bsr_cases,
    "cast_values": cast_values,
    "dcsr_cases": dcsr_cases,
    "distinct_cases": distinct_cases,
    "elements_cases": elements_cases,
    "ell_cases": ell_cases,
    "fact_cases": fact_cases,
    "guard_cases": guard_cases,
    "pairs": pairs,
    "product_cases": product_cases,
    "relation_cases": relation_cases,
    "row_groups_cases": row_groups_cases,
    "row_sums_cases": row_sums_cases,
    "scalar_values": scalar_values,
    "search_cases": search_cases,
    "sddmm_cases": sddmm_cases,
    "segment_sums_cases": segment_sums_cases,
    "spmm_cases": spmm_cases,
    "spmv_cases": spmv_cases,
    "bitmask_cases": bitmask_cases,
    "tiled_csr_cases": tiled_csr_cases,
    "truths": truths,
    "vectors": vectors,
    "weight_cases": weight_cases,
}
