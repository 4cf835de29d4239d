"""The matrices of the benchmark, generated or read from a folder of data sets."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec
import numpy as np
from scipy import sparse

from gossamer_support.arrays import Array

Kind: TypeAlias = Literal[
    "graph", "road", "mesh", "circuit", "program", "weights", "blocks", "masks"
]

GENERATED = {"power_law_170k": (170_000, 1_200_000)}
"""Nodes and edges of graphs with a power-law degree distribution."""

GENERATED_BLOCKS = {"blocks_4096": (4096, 16, 0.1)}
"""Size of the matrix, size of a block, and density of blocks."""

GENERATED_MASKS = {"window_4096": (4096, 64, 0, 0.0), "bigbird_4096": (4096, 64, 32, 0.01)}
"""Size of attention masks, width of the window to each side of the diagonal, number of full rows and
columns, and density of the other elements."""

SWEEP_FILE = "dlmc_transformer_sweep"
_PRUNING = "transformer.magnitude_pruning.0.{percent}.body_decoder_layer_3_{layer}_fully_connected"
SWEEP = {
    f"dlmc_{layer}_{percent}": _PRUNING.format(percent=percent.rstrip("0"), layer=layer)
    for layer in ("ffn_conv1", "ffn_conv2")
    for percent in ("50", "70", "80", "90", "95", "98")
}
"""Weights of one layer of a transformer, pruned to several densities, by their names in the file of all."""

KINDS: dict[Kind, tuple[str, ...]] = {
    "graph": (
        "cora",
        "pubmed",
        "ppi_graphsaint",
        "ogbn_arxiv",
        *GENERATED,
        "web_cnr2000",
        "soc_epinions1",
    ),
    "road": ("luxembourg_osm",),
    "mesh": ("bcsstk16", "cavity14", "delaunay_n16", "wing_mesh"),
    "circuit": ("memplus",),
    "program": ("lp_maros_r7",),
    "weights": (
        "dlmc_rn50_mag90_b4_conv2",
        "dlmc_tr_mag80_dec3_ffn1",
        "dlmc_tr_l095_dec3_ffn2",
        *SWEEP,
    ),
    "blocks": tuple(GENERATED_BLOCKS),
    "masks": tuple(GENERATED_MASKS),
}
BLOCKS, MASKS = KINDS["blocks"], KINDS["masks"]
RARE = (
    "web_cnr2000",
    "soc_epinions1",
    "delaunay_n16",
    "wing_mesh",
    "memplus",
    "lp_maros_r7",
    *SWEEP,
)
"""Measured only if chosen: there are similar ones, and a run has to end in half an hour."""
NAMES = tuple(name for names in KINDS.values() for name in names)
IN_CSR = tuple(name for name in NAMES if name not in (*BLOCKS, *MASKS))


class MissingMatrixError(Exception):
    """A matrix is not available on this machine; the message says why."""


class BenchmarkMatrix(msgspec.Struct, frozen=True, eq=False):
    """A named matrix, sorted and without duplicates, with int32 indices; also in blocks if it was
    generated from blocks."""

    name: str
    kind: Kind
    csr: sparse.csr_matrix
    bsr: sparse.bsr_matrix | None = None


def datasets_folder() -> Path:
    """Return `GOSSAMER_DATASETS`, by default `shared/datasets` beside the repository."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "datasets"
    return Path(os.environ.get("GOSSAMER_DATASETS", beside))


@cache
def load_matrix(name: str, dtype: str = "float32") -> BenchmarkMatrix:
    """Return the named matrix. A pattern without values gets random values in [0.5, 1.5), so that wrong
    values are detected. Raises `MissingMatrixError` with the reason."""
    if name in GENERATED_BLOCKS:
        return random_blocks(name, *GENERATED_BLOCKS[name], dtype=dtype)
    if name in GENERATED_MASKS:
        return canonical_matrix(name, mask(*GENERATED_MASKS[name]), dtype)
    if name in GENERATED:
        from gossamer.cli.comparison.graphs import power_law
        from gossamer_formats import to_scipy

        return canonical_matrix(
            name, sparse.csr_matrix(to_scipy(power_law(*GENERATED[name]))), dtype
        )
    path = datasets_folder() / f"{SWEEP_FILE if name in SWEEP else name}.npz"
    if not path.exists():
        raise MissingMatrixError(f"{path} does not exist (GOSSAMER_DATASETS names the folder)")
    stored = read_pruned(path, SWEEP[name]) if name in SWEEP else sparse.load_npz(path)
    return canonical_matrix(name, sparse.csr_matrix(stored), dtype)


def available(names: Iterable[str]) -> Iterator[str]:
    """Yield the names of the matrices that are available on this machine.

    >>> list(available(["blocks_4096"]))
    ['blocks_4096']
    """
    for name in names:
        try:
            load_matrix(name)
        except MissingMatrixError:
            continue
        yield name


def load_arrays_of(name: str) -> dict[str, Array]:
    """Return the arrays of a data set that is not a matrix. Raises `MissingMatrixError` with the reason."""
    path = datasets_folder() / f"{name}.npz"
    if not path.exists():
        raise MissingMatrixError(f"{path} does not exist (GOSSAMER_DATASETS names the folder)")
    with np.load(path) as file:
        return dict(file)


def read_pruned(path: Path, key: str) -> sparse.csr_matrix:
    """Return the pattern of a matrix in a file of several, which has a bit for each element."""
    with np.load(path) as file:
        rows, columns = map(int, file[f"{key}.shape"])
        bits = np.unpackbits(file[key])[: rows * columns]
    return sparse.csr_matrix(bits.reshape(rows, columns).astype(np.float32))


def canonical_matrix(
    name: str, matrix: sparse.csr_matrix, dtype: str = "float32"
) -> BenchmarkMatrix:
    """Return canonical CSR in the dtype with int32 indices; constant values are replaced."""
    matrix = sparse.csr_matrix(matrix.astype(dtype))
    matrix.sum_duplicates()
    matrix.sort_indices()
    if matrix.nnz and np.all(matrix.data == matrix.data[0]):
        random = np.random.default_rng(1)
        matrix.data = (0.5 + random.random(matrix.nnz)).astype(dtype)
    matrix.indices = matrix.indices.astype(np.int32)
    matrix.indptr = matrix.indptr.astype(np.int32)
    return BenchmarkMatrix(name, matrix_kind(name), matrix)


def matrix_kind(name: str) -> Kind:
    """Return the kind of a matrix, by default a graph."""
    return next((kind for kind, names in KINDS.items() if name in names), "graph")


def mask(size: int, reach: int, full: int, share: float) -> sparse.csr_matrix:
    """Return a band with full rows and columns and random elements, as in BigBird (Zaheer
    and others, "Big Bird: Transformers for Longer Sequences", 2020).

    >>> mask(4, 1, 1, 0.0).toarray().astype(int).tolist()
    [[1, 1, 1, 1], [1, 1, 1, 0], [1, 1, 1, 1], [1, 0, 1, 1]]
    """
    numbers = np.arange(size, dtype=np.int32)
    stored = np.abs(numbers[:, None] - numbers) <= reach
    stored |= (numbers < full) | (numbers < full)[:, None]
    stored |= np.random.default_rng(1).random((size, size), dtype=np.float32) < share
    return sparse.csr_matrix(stored)


def random_blocks(
    name: str, size: int, block: int, density: float, *, dtype: str
) -> BenchmarkMatrix:
    """Return a square matrix of random dense blocks without zeros.

    >>> tiny = random_blocks("tiny", 64, 16, 0.25, dtype="float32")
    >>> tiny.bsr.blocksize, len(tiny.bsr.indices), tiny.csr.nnz
    ((16, 16), 4, 1024)
    """
    random, across = np.random.default_rng(1), size // block
    stored = round(density * across**2)
    places = np.sort(random.choice(across**2, stored, replace=False))
    indptr = np.searchsorted(places, across * np.arange(across + 1)).astype(np.int32)
    data = (0.5 + random.random((stored, block, block))).astype(dtype)
    indices = (places % across).astype(np.int32)
    bsr = sparse.bsr_matrix((data, indices, indptr), shape=(size, size))
    return BenchmarkMatrix(name, "blocks", sparse.csr_matrix(bsr.tocsr()), bsr)
