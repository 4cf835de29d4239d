"""A differentiable operator of torch in ten lines: squared distances of the ends of each edge.

python -m examples.models.custom_operator
"""

from __future__ import annotations

import torch

import gossamer_torch as gt

SCRIPT = """\
@T.prim_func
def distances(x: T.handle, y: T.handle, d: T.handle, indptr: T.handle, indices: T.handle,
              m: T.int64, n: T.int64, features: T.int64, nnz: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (indptr, indices), "int32", sorted=False, unique=False)
    J_all = T.sp.dense_fixed(n)
    K = T.sp.dense_fixed(features)
    X = T.sp.match_buffer(x, (I, K), "float32")
    Y = T.sp.match_buffer(y, (J_all, K), "float32")
    D = T.sp.match_buffer(d, (I, J), "float32")
    with T.sp.iteration([I, J, K], "SSR", "distances") as [i, j, k]:
        with T.init():
            D[i, j] = 0.0
        D[i, j] = D[i, j] + (X[i, k] - Y[j, k]) * (X[i, k] - Y[j, k])
"""


def place_nodes(edges: torch.Tensor, *, steps: int = 300) -> torch.Tensor:
    """Return places of the nodes in a plane such that the ends of each edge (2 by E) have the distance 1."""
    torch.manual_seed(0)
    distances = gt.custom_op(SCRIPT)
    graph = gt.from_edge_index(edges)
    places = torch.randn(graph.shape[0], 2, requires_grad=True)
    optimizer = torch.optim.Adam([places], lr=0.05)
    for _ in range(steps):
        optimizer.zero_grad()
        (distances(places, places, graph.crow, graph.col) - 1).square().sum().backward()
        optimizer.step()
    return places.detach()


if __name__ == "__main__":
    print(place_nodes(torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]])))
