"""Relational graph convolution over buckets of the rows of each relation (ELL3D), in two forms.

    Y[i, l] = sum over r, j, k of A[r, i, j] * X[j, k] * W[r, k, l]

The fused form is `gathered_products`. The form in two steps first multiplies the features of each neighbor
by the weights, and stores these products for all edges, as in the published program for tensor cores (Ye and
others, ASPLOS 2023). It makes one product for each edge instead of one for each row of a relation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

import gossamer as gs
from examples import gathered_products
from examples.datasets import knowledge_graph
from examples.example import Call, Example, random_array
from examples.gathered_products import LANES, OPERANDS, TILE, Gathered
from examples.torch_baseline import torch_call
from gossamer_schedule import ScheduleBuilder
from gossamer_support.arrays import Array

WIDTHS = (1, 2, 4, 8, 16)
FEATURES = 32

TWO_STEPS = f"""{OPERANDS}\
    XW = T.sp.alloc_buffer((P, R, IO, II, J, L), "float32")
    with T.sp.iteration([P, R, IO, II, J, L, K], "SSSSSSR", "transform") as [p, r, io, ii, j, l, k]:
        with T.init():
            XW[p, r, io, ii, j, l] = 0.0
        XW[p, r, io, ii, j, l] = XW[p, r, io, ii, j, l] + X[j, k] * W[r, k, l]
    with T.sp.iteration([P, R, IO, II, J, L], "SSSSRS", "aggregate") as [p, r, io, ii, j, l]:
        Y[p, ii, l] = Y[p, ii, l] + A[p, r, io, ii, j] * XW[p, r, io, ii, j, l]
"""


def two_steps_schedule(sizes: dict[str, int]) -> ScheduleBuilder:
    """Return the schedule of `TWO_STEPS`: rows of a group share each loaded vector of weights."""
    relations = sizes["relations"]
    sch = gs.schedule(TWO_STEPS, specialize=sizes).lower().lower()
    p, _, _, ii, j, l, k = sch.get_loops("transform")  # noqa: E741
    l_tile, l_vector, l_lane = sch.split(l, factors=(None, TILE, LANES)).names
    sch.reorder(j, l_tile, k, ii, l_vector, l_lane)
    _, copy, *_ = sch.cache_write("transform", buffer="XW_data", scope="local").names
    sch.reverse_compute_at(copy, loop=l_tile)
    init, *_ = sch.decompose_reduction("transform", loop=k).names
    sch.split(sch.get_loops(copy)[-1], factors=(TILE, LANES))
    for block in (init, "transform", copy):
        rows, vector, lane = sch.get_loops(block)[-3:]
        sch.unroll(rows).unroll(vector).vectorize(lane)
    added = sch.get_loops("aggregate")
    sch.vectorize(sch.split(added[-1], factors=(None, LANES)).names[1])
    for loop in (p, added[0]):
        sch.parallel(loop, weight=f"T.int64(IO_indptr[{loop} * {relations}])")
    return sch


def fused_call(inputs: Gathered) -> Call:
    """Prepare the fused form."""
    return gathered_products.prepare(inputs, WIDTHS)


def two_step_call(inputs: Gathered) -> Call:
    """Prepare the form in two steps."""
    return gathered_products.prepare(inputs, WIDTHS, script=TWO_STEPS, schedule=two_steps_schedule)


# --- without gossamer


def matrices_of(inputs: Gathered) -> list[tuple[Array, sparse.csr_matrix]]:
    """Return, for each relation, the rows that have edges and the matrix of these rows."""
    relations = []
    relation, target, source = inputs.coordinates
    for number in range(inputs.shape[0]):
        chosen = relation == number
        edges = (inputs.values[chosen], (target[chosen], source[chosen]))
        whole = sparse.csr_matrix(edges, shape=inputs.shape[1:])
        rows = np.flatnonzero(np.diff(whole.indptr))
        relations.append((rows, whole[rows]))
    return relations


def scipy_by_relations(inputs: Gathered) -> Call:
    """Return SciPy's products with the rows of each relation that have edges, then NumPy's with the
    weights."""
    matrices = matrices_of(inputs)

    def call() -> Array:
        result = np.zeros((inputs.shape[1], inputs.w.shape[2]), np.float32)
        for (rows, matrix), weights in zip(matrices, inputs.w, strict=True):
            result[rows] += (matrix @ inputs.x) @ weights
        return result

    return call


def scipy_transformed(inputs: Gathered) -> Call:
    """Return the features of all nodes times the weights of all relations, then one product with all
    edges."""
    relations, rows, columns = inputs.shape
    relation, target, source = inputs.coordinates
    edges = (inputs.values, (target, relation * columns + source))
    matrix = sparse.csr_matrix(edges, shape=(rows, relations * columns))

    def call() -> Array:
        transformed = (inputs.x[None] @ inputs.w).reshape(relations * columns, inputs.w.shape[2])
        return np.asarray(matrix @ transformed)

    return call


@torch_call
def torch_edges(torch: Any, inputs: Gathered) -> Callable[[], Any]:
    """Gather the rows of each relation, multiply them by the weights, and add them by index, as in PyG."""
    relation, target, source = inputs.coordinates
    bounds = np.searchsorted(relation, np.arange(inputs.shape[0] + 1))
    x, w, values = (torch.from_numpy(each) for each in (inputs.x, inputs.w, inputs.values))
    targets, sources = torch.from_numpy(target), torch.from_numpy(source)

    def call() -> Any:
        result = torch.zeros(inputs.shape[1], w.shape[2])
        for number in range(inputs.shape[0]):
            relation_slots = slice(int(bounds[number]), int(bounds[number + 1]))
            gathered = x.index_select(0, sources[relation_slots]) * values[relation_slots, None]
            result.index_add_(0, targets[relation_slots], gathered @ w[number])
        return result

    return call


# --- inputs


def random_inputs(
    relations: int, rows: int, columns: int, edges: int, *, features: int, outputs: int
) -> Gathered:
    """Return random edges; one row has edges to all columns in the first relation."""
    rng = np.random.default_rng(edges)
    size = relations * rows * columns
    chosen = rng.integers(0, max(size, 1), edges if size else 0)
    one_row = np.arange(columns) + rows // 2 * columns
    number = np.unique(np.concatenate([chosen, one_row]) if edges and size else chosen)
    coordinates = (
        number // max(rows * columns, 1),
        number // max(columns, 1) % max(rows, 1),
        number % max(columns, 1),
    )
    return Gathered(
        (relations, rows, columns),
        coordinates,
        random_array(number.size, seed=1),
        random_array(columns, features, seed=2),
        random_array(relations, features, outputs, seed=3),
    )


def load_graph(name: str) -> Gathered:
    """Return a knowledge graph whose messages are averaged over the edges of a row in each relation."""
    graph = knowledge_graph(name)
    _, row, count = np.unique(
        graph.relation * graph.nodes + graph.target, return_inverse=True, return_counts=True
    )
    return Gathered(
        (graph.relations, graph.nodes, graph.nodes),
        (graph.relation, graph.target, graph.source),
        (1 / count[row]).astype(np.float32),
        random_array(graph.nodes, FEATURES, seed=2),
        random_array(graph.relations, FEATURES, FEATURES, seed=3),
    )


EXAMPLE = Example(
    "relational_convolution",
    cases={
        "random": lambda: random_inputs(4, 60, 50, 500, features=32, outputs=32),
        "odd sizes": lambda: random_inputs(3, 33, 29, 200, features=7, outputs=5),
        "no edges": lambda: random_inputs(2, 9, 7, 0, features=8, outputs=8),
        "no rows": lambda: random_inputs(2, 0, 7, 0, features=8, outputs=8),
        "no columns": lambda: random_inputs(2, 7, 0, 0, features=8, outputs=8),
    },
    datasets={
        "kg_aifb": lambda: load_graph("kg_aifb"),
        "kg_fb15k237": lambda: load_graph("kg_fb15k237"),
    },
    oracle=gathered_products.oracle,
    magnitude=gathered_products.magnitude,
    terms=gathered_products.terms,
    programs={"fused": fused_call, "two_steps": two_step_call},
    baselines={
        "scipy_by_relations": scipy_by_relations,
        "scipy_transformed": scipy_transformed,
        "torch_edges": torch_edges,
    },
)
