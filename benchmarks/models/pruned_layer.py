"""Linear layers of transformers with pruned weights: those of DLMC (Gale, Elsen and Hooker, 2019), and of the
size of the first layer of a feed-forward block of BERT, randomly pruned."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy import sparse

from benchmarks.matrices import load_matrix
from benchmarks.models.model_problem import Arrays, ModelProblem, random_arrays
from gossamer_support.arrays import Array

BERT_SHAPE = (3072, 768)
BERT = {f"bert_{percent}": 1 - percent / 100 for percent in (80, 90, 95)}
LAYERS = ("dlmc_ffn_conv1_80", "dlmc_ffn_conv1_90", "dlmc_ffn_conv1_95", *BERT)
"""The last figure is the sparsity in percent."""
TOKENS = 512


def pruned_problem(layer: str) -> ModelProblem:
    """Return x W^T + b for a batch of tokens."""
    matrix = sparse.csr_matrix(
        pruned_bert(BERT[layer]) if layer in BERT else load_matrix(layer).csr
    )
    rows, columns = matrix.shape
    arrays = random_arrays(17, x=(TOKENS, columns), seed=(TOKENS, rows), b=(rows,))
    values = np.random.default_rng(19).standard_normal(matrix.nnz).astype(np.float32)
    arrays |= {"indptr": matrix.indptr, "indices": matrix.indices, "values": values}
    return ModelProblem(
        "pruned", layer, arrays, ("x", "values", "b"), pruned_oracle, sizes={"columns": columns}
    )


def pruned_bert(density: float) -> sparse.csr_matrix:
    """Return a random pattern."""
    stored = np.random.default_rng(23).random(BERT_SHAPE) < density
    matrix = sparse.csr_matrix(stored.astype(np.float32))
    matrix.indices, matrix.indptr = matrix.indices.astype(np.int32), matrix.indptr.astype(np.int32)
    return matrix


def pruned_oracle(arrays: Mapping[str, Array]) -> Arrays:
    """Return the output and the gradients; that of the values stays on the pattern."""
    x, seed = arrays["x"], arrays["seed"]
    shape = (len(arrays["indptr"]) - 1, x.shape[1])
    parts = (arrays["values"], arrays["indices"], arrays["indptr"])
    matrix = sparse.csr_matrix(parts, shape=shape)
    rows = np.repeat(np.arange(shape[0]), np.diff(arrays["indptr"]))
    return {
        "output": (matrix @ x.T).T + arrays["b"],
        "x": (matrix.T @ seed.T).T,
        "values": (seed.T @ x)[rows, arrays["indices"]],
        "b": seed.sum(0),
    }
