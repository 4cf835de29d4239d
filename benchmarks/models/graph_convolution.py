"""Two layers of GCN (Kipf and Welling, ICLR 2017) and of GraphSAGE with means (Hamilton, Ying and Leskovec,
NeurIPS 2017) on graphs."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from scipy import sparse

from benchmarks.matrices import load_matrix
from benchmarks.models.model_problem import Arrays, ModelProblem, random_arrays
from gossamer_support.arrays import Array

NEAR_ZERO = 0.05
"""The distance from 0 within which `bias_between_values` looks for a gap."""
GRAPHS = ("cora", "pubmed", "ppi_graphsaint", "ogbn_arxiv")
FEATURES, HIDDEN, CLASSES = 128, 64, 40


def gcn_problem(graph: str) -> ModelProblem:
    """Return the GCN on a graph: its matrix has loops and symmetrically normalized weights."""
    return _problem(
        "gcn",
        normalized_adjacency(adjacency(graph)),
        graph,
        oracle=gcn_oracle,
        weights=("w1", "w2"),
    )


def sage_problem(graph: str) -> ModelProblem:
    """Return GraphSAGE on a graph: the rows of its matrix add up to 1."""
    matrix = adjacency(graph)
    degrees = np.maximum(np.diff(matrix.indptr), 1)
    mean = sparse.csr_matrix(sparse.diags((1 / degrees).astype(np.float32)) @ matrix)
    weights = ("w1", "w1_root", "w2", "w2_root")
    return _problem("graphsage", mean, graph, oracle=sage_oracle, weights=weights)


def adjacency(graph: str) -> sparse.csr_matrix:
    """Return the pattern of a graph with ones: row i has the neighbors from which node i receives."""
    matrix = load_matrix(graph, "float32").csr
    ones = np.ones(matrix.nnz, np.float32)
    return sparse.csr_matrix((ones, matrix.indices, matrix.indptr), shape=matrix.shape)


def normalized_adjacency(matrix: sparse.csr_matrix) -> sparse.csr_matrix:
    """Return D^-1/2 (A + I) D^-1/2."""
    looped = sparse.csr_matrix(matrix + sparse.eye(matrix.shape[0], dtype=np.float32))
    looped.data[:] = 1
    roots = sparse.diags((1 / np.sqrt(np.diff(looped.indptr))).astype(np.float32))
    result = sparse.csr_matrix(roots @ looped @ roots)
    result.sort_indices()
    return result


def _problem(
    model: str,
    matrix: sparse.csr_matrix,
    graph: str,
    *,
    oracle: Callable[[Mapping[str, Array]], Arrays],
    weights: tuple[str, ...],
) -> ModelProblem:
    nodes = matrix.shape[0]
    widths = {"1": (FEATURES, HIDDEN), "2": (HIDDEN, CLASSES)}
    arrays = random_arrays(
        7,
        x=(nodes, FEATURES),
        seed=(nodes, CLASSES),
        b1=(HIDDEN,),
        b2=(CLASSES,),
        **{name: widths[name[1]] for name in weights},
    )
    arrays |= {"indptr": matrix.indptr, "indices": matrix.indices, "values": matrix.data}
    arrays["b1"] = bias_between_values(_features_before_relu(arrays), arrays["b1"])
    return ModelProblem(model, graph, arrays, (*weights, "b1", "b2"), oracle)


def _features_before_relu(arrays: Mapping[str, Array]) -> Array:
    """Return the features of the first layer before relu."""
    x = arrays["x"].astype(np.float64)
    before: Array = matrix_of(arrays) @ (x @ arrays["w1"]) + arrays["b1"]
    return before + x @ arrays["w1_root"] if "w1_root" in arrays else before


def bias_between_values(before: Array, bias: Array) -> Array:
    """Return the bias moved, so that the values of each column that are next to 0 are as far from it as they
    can be: 0 comes to the middle of their widest gap near 0.

    relu has no derivative at 0. A value that is 0 but for its rounding has either of two gradients, which
    differ by far more than rounding. Among millions of values there is one. `before` has the values with the
    bias.

    >>> bias_between_values(np.array([[-0.04], [1e-9], [0.02]]), np.array([0.5], np.float32))
    array([0.52], dtype=float32)
    """
    moved = bias.copy()
    for column, values in enumerate(before.T):
        near = np.sort(values[np.abs(values) < NEAR_ZERO])
        if len(near) > 1:
            widest = np.argmax(np.diff(near))
            moved[column] -= (near[widest] + near[widest + 1]) / 2
    return moved


def matrix_of(arrays: Mapping[str, Array]) -> sparse.csr_matrix:
    """Return the matrix of a case."""
    nodes = len(arrays["indptr"]) - 1
    parts = (arrays["values"], arrays["indices"], arrays["indptr"])
    return sparse.csr_matrix(parts, shape=(nodes, nodes))


def gcn_oracle(arrays: Mapping[str, Array]) -> Arrays:
    """Return the output A relu(A X W1 + b1) W2 + b2 and the gradients."""
    matrix, received = matrix_of(arrays), matrix_of(arrays) @ arrays["x"]
    before = received @ arrays["w1"] + arrays["b1"]
    hidden = np.maximum(before, 0)
    output = matrix @ (hidden @ arrays["w2"]) + arrays["b2"]
    back = matrix.T @ arrays["seed"]
    before_gradient = back @ arrays["w2"].T * (before > 0)
    return {
        "output": output,
        "w1": received.T @ before_gradient,
        "w2": hidden.T @ back,
        "b1": before_gradient.sum(0),
        "b2": arrays["seed"].sum(0),
    }


def sage_oracle(arrays: Mapping[str, Array]) -> Arrays:
    """Return the output of two layers M X W + b + X W_root, the first one with relu, and the gradients."""
    matrix, x, seed = matrix_of(arrays), arrays["x"], arrays["seed"]
    received = matrix @ x
    before = received @ arrays["w1"] + arrays["b1"] + x @ arrays["w1_root"]
    hidden = np.maximum(before, 0)
    neighbor_sums = matrix @ hidden
    output = neighbor_sums @ arrays["w2"] + arrays["b2"] + hidden @ arrays["w2_root"]
    hidden_gradient = matrix.T @ (seed @ arrays["w2"].T) + seed @ arrays["w2_root"].T
    before_gradient = hidden_gradient * (before > 0)
    return {
        "output": output,
        "w1": received.T @ before_gradient,
        "w1_root": x.T @ before_gradient,
        "w2": neighbor_sums.T @ seed,
        "w2_root": hidden.T @ seed,
        "b1": before_gradient.sum(0),
        "b2": seed.sum(0),
    }
