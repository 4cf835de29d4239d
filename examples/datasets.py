"""Data sets of the examples: knowledge graphs, voxels and pruned weights, from a folder of `.npz` files."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from benchmarks.matrices import datasets_folder
from examples.example import UnavailableError
from gossamer_support.arrays import Array


def load_arrays(name: str) -> dict[str, Array]:
    """Return the arrays of a file; raises `UnavailableError` if it does not exist."""
    path = datasets_folder() / f"{name}.npz"
    if not path.exists():
        raise UnavailableError(f"{path} does not exist (GOSSAMER_DATASETS names the folder)")
    with np.load(path, allow_pickle=False) as stored:
        return {key: stored[key] for key in stored.files}


class Triples(NamedTuple):
    """Edges of several relations, sorted and unique: relation, target and source of each."""

    nodes: int
    relations: int
    relation: Array
    target: Array
    source: Array


def knowledge_graph(name: str) -> Triples:
    """Return the edges of a knowledge graph, from head to tail."""
    arrays = load_arrays(name)
    nodes = int(arrays["num_entities"])
    relation, target, source = (arrays[key].astype(np.int64) for key in ("rel", "tail", "head"))
    number = np.unique((relation * nodes + target) * nodes + source)
    return Triples(
        nodes,
        int(arrays["num_relations"]),
        number // nodes**2,
        number // nodes % nodes,
        number % nodes,
    )


def voxels(name: str) -> Array:
    """Return the coordinates (voxels by 3) of occupied voxels, sorted and unique."""
    return np.unique(load_arrays(name)["coords"].astype(np.int64), axis=0)


def pruned_weights(name: str) -> sparse.csr_matrix:
    """Return one pattern of the bundle of pruned transformer weights, with values."""
    arrays = load_arrays("dlmc_transformer_sweep")
    rows, columns = map(int, arrays[f"{name}.shape"])
    bits = np.unpackbits(arrays[name])[: rows * columns].reshape(rows, columns)
    matrix = sparse.csr_matrix(bits.astype(np.float32))
    matrix.data = np.random.default_rng(1).standard_normal(matrix.nnz).astype(np.float32)
    matrix.indices, matrix.indptr = (
        array.astype(np.int32) for array in (matrix.indices, matrix.indptr)
    )
    return matrix
