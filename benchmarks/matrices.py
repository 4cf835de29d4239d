"""The matrices of the benchmark: generated ones and the files of a folder of data sets."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from scipy import sparse

from gossamer.graphs import power_law
from gossamer_formats import to_scipy

FILES = (
    "cora",
    "pubmed",
    "ogbn_arxiv",
    "ppi_graphsaint",
    "web_cnr2000",
    "bcsstk16",
    "dlmc_rn50_mag90_b4_conv2",
    "dlmc_tr_mag80_dec3_ffn1",
    "dlmc_tr_l095_dec3_ffn2",
)
GENERATED = {"power_law_170k": (170_000, 1_200_000)}
"""Nodes and edges of graphs with power-law degrees."""

NAMES = (*GENERATED, *FILES)


class MissingMatrixError(Exception):
    """A matrix that this machine does not have; the text says why."""


def datasets_folder() -> Path:
    """`GOSSAMER_DATASETS`, or `shared/datasets` beside the repository."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "datasets"
    return Path(os.environ.get("GOSSAMER_DATASETS", beside))


def load_matrix(name: str) -> sparse.csr_matrix:
    """The named matrix in float32 with int32 indices, sorted and without duplicates.

    A matrix that is a pattern only gets values in [0.5, 1.5), so that a wrong value shows.
    Raises `MissingMatrixError` with the reason.
    """
    if name in GENERATED:
        return prepared(sparse.csr_matrix(to_scipy(power_law(*GENERATED[name]))))
    path = datasets_folder() / f"{name}.npz"
    if not path.exists():
        raise MissingMatrixError(f"{path} does not exist (GOSSAMER_DATASETS names the folder)")
    return prepared(sparse.csr_matrix(sparse.load_npz(path)))


def prepared(matrix: sparse.csr_matrix) -> sparse.csr_matrix:
    """Canonical CSR in float32 and int32; constant values are replaced."""
    matrix = matrix.astype(np.float32)
    matrix.sum_duplicates()
    matrix.sort_indices()
    if matrix.nnz and np.all(matrix.data == matrix.data[0]):
        random = np.random.default_rng(1)
        matrix.data = (0.5 + random.random(matrix.nnz)).astype(np.float32)
    matrix.indices = matrix.indices.astype(np.int32)
    matrix.indptr = matrix.indptr.astype(np.int32)
    return matrix
