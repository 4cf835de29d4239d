"""Test tools for authors of backends and formats: conformance suites, corpus, matrices, oracles."""

from gossamer_testkit.conformance.backends import BackendSuite
from gossamer_testkit.conformance.base import SuiteCheck
from gossamer_testkit.conformance.composable_formats import ComposableFormatSuite
from gossamer_testkit.conformance.formats import FormatSuite
from gossamer_testkit.corpus.case import Case, Expected
from gossamer_testkit.corpus.program import Manifest, Program, corpus_names, corpus_program
from gossamer_testkit.corpus.script import script, script_names
from gossamer_testkit.matrices.cases import csr_cases
from gossamer_testkit.matrices.csr_matrix import Csr, from_mask, from_rows
from gossamer_testkit.matrices.oracles import (
    attention,
    attention_bound,
    bsr_spmm,
    max_relative_error,
    sddmm,
    sddmm_magnitude,
    spmm,
    spmm_magnitude,
    spmv,
    spmv_magnitude,
    tolerance,
)
from gossamer_testkit.matrices.strategies import csr_matrices, dense_operands

__all__ = [
    "BackendSuite",
    "Case",
    "ComposableFormatSuite",
    "Csr",
    "Expected",
    "FormatSuite",
    "Manifest",
    "Program",
    "SuiteCheck",
    "attention",
    "attention_bound",
    "bsr_spmm",
    "corpus_names",
    "corpus_program",
    "csr_cases",
    "csr_matrices",
    "dense_operands",
    "from_mask",
    "from_rows",
    "max_relative_error",
    "script",
    "script_names",
    "sddmm",
    "sddmm_magnitude",
    "spmm",
    "spmm_magnitude",
    "spmv",
    "spmv_magnitude",
    "tolerance",
]
