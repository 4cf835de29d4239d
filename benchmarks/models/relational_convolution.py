"""One layer of relational graph convolution (Schlichtkrull et al., ESWC 2018) on knowledge graphs."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy import sparse

from benchmarks.matrices import load_arrays_of
from benchmarks.models.model_problem import Arrays, ModelProblem, random_arrays
from gossamer_support.arrays import Array

GRAPHS = ("kg_aifb", "kg_fb15k237")
CHANNELS = 32


def rgcn_problem(graph: str) -> ModelProblem:
    """Return the layer on a knowledge graph, each of whose statements is an edge from its head to its
    tail. Duplicates are removed."""
    stored = load_arrays_of(graph)
    triples = np.unique(np.stack([stored["head"], stored["rel"], stored["tail"]]), axis=1)
    head, relation, tail = triples.astype(np.int64)
    nodes, relations = int(stored["num_entities"]), int(stored["num_relations"])
    arrays = random_arrays(
        11,
        x=(nodes, CHANNELS),
        seed=(nodes, CHANNELS),
        weights=(relations, CHANNELS, CHANNELS),
        w_root=(CHANNELS, CHANNELS),
        b=(CHANNELS,),
    )
    arrays |= {"edge_index": np.stack([head, tail]), "edge_type": relation}
    sizes = {"relations": relations}
    return ModelProblem(
        "rgcn", graph, arrays, ("x", "weights", "w_root", "b"), rgcn_oracle, sizes=sizes
    )


def rgcn_oracle(arrays: Mapping[str, Array]) -> Arrays:
    """Return X W_root + b and, for each relation, the mean over its edges into a node of their heads' X W_r,
    and the gradients."""
    x, seed, weights = arrays["x"], arrays["seed"], arrays["weights"]
    (head, tail), relation = arrays["edge_index"], arrays["edge_type"]
    output = x @ arrays["w_root"] + arrays["b"]
    x_gradient, weight_gradients = seed @ arrays["w_root"].T, np.zeros_like(weights)
    for number in range(len(weights)):
        chosen = relation == number
        ones = (np.ones(int(chosen.sum())), (tail[chosen], head[chosen]))
        matrix = sparse.csr_matrix(ones, shape=(len(x), len(x)))
        counts = np.maximum(matrix.sum(1), 1)
        mean = sparse.csr_matrix(sparse.diags(1 / np.asarray(counts)[:, 0]) @ matrix)
        received = mean @ x
        output += received @ weights[number]
        weight_gradients[number] = received.T @ seed
        x_gradient += mean.T @ (seed @ weights[number].T)
    return {
        "output": output,
        "x": x_gradient,
        "weights": weight_gradients,
        "w_root": x.T @ seed,
        "b": seed.sum(0),
    }
