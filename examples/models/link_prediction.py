"""Link prediction in a knowledge graph: a relational graph convolution encodes the entities, DistMult scores
the triples (Schlichtkrull et al., ESWC 2018).

    python -m examples.models.link_prediction [NAME]

NAME is a data set in the folder of `GOSSAMER_DATASETS`, such as `kg_fb15k237` or `kg_aifb`; without it, the
graph is generated. Ranks are filtered: other ends that make a stored triple do not count. The baseline ranks
entities by how often they are the tail (or the head) of the relation.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, TypeAlias

import numpy as np
import torch

from examples.datasets import load_arrays
from gossamer_support.arrays import Array
from gossamer_torch.nn import RGCNConv, relation_pairs

WIDTH = 64

Scores: TypeAlias = Callable[[torch.Tensor], torch.Tensor]
"""Returns the scores of all entities as the tails of queries (number by 3: head, relation and a tail)."""


class Triples(NamedTuple):
    """Triples (number by 3: head, relation, tail) in both directions: those from tail to head have relations
    of their own."""

    train: torch.Tensor
    test: torch.Tensor
    entities: int
    relations: int


def stored_triples(name: str) -> Triples:
    """Return the triples of a data set; every tenth is for the test if the data set has no split."""
    arrays = load_arrays(name)
    triples = np.stack([arrays[key] for key in ("head", "rel", "tail")], axis=1)
    is_test = np.random.default_rng(0).random(len(triples)) < 0.1
    if "split" in arrays:
        is_test = np.arange(len(triples)) >= len(triples) - arrays["split"][-1]
    return both_directions(
        triples, is_test, int(arrays["num_entities"]), int(arrays["num_relations"])
    )


def generated_triples(
    *, groups: int = 8, members: int = 10, relations: int = 4, count: int = 2000
) -> Triples:
    """Return triples in which each relation leads from a group of entities to another one."""
    rng = np.random.default_rng(0)
    head = rng.integers(groups * members, size=count)
    relation = rng.integers(relations, size=count)
    tail = (head + relation + 1) % groups + groups * rng.integers(members, size=count)
    triples = np.unique(np.stack([head, relation, tail], axis=1), axis=0)
    return both_directions(triples, rng.random(len(triples)) < 0.1, groups * members, relations)


def both_directions(triples: Array, is_test: Array, entities: int, relations: int) -> Triples:
    """Return the triples and their inverses, for training and for the test."""
    head, relation, tail = triples.astype(np.int64).T
    forward, inverse = torch.tensor(
        np.stack([[head, relation, tail], [tail, relation + relations, head]])
    ).mT
    chosen = torch.from_numpy(is_test)
    train, test = (torch.cat([forward[kept], inverse[kept]]) for kept in (~chosen, chosen))
    return Triples(train, test, entities, 2 * relations)


class Model(torch.nn.Module):
    """Vectors of entities, to which a layer adds what they receive from their neighbors, and diagonal
    matrices of relations."""

    def __init__(self, triples: Triples, width: int = WIDTH) -> None:
        super().__init__()
        edges, types = triples.train[:, ::2].T.contiguous(), triples.train[:, 1].contiguous()
        self.pairs = relation_pairs(edges, types, triples.entities, triples.relations)
        self.entities = torch.nn.Parameter(torch.randn(triples.entities, width) * width**-0.5)
        self.relations = torch.nn.Parameter(torch.randn(triples.relations, width))
        self.layer = RGCNConv(width, width, triples.relations, num_bases=4)

    def encode(self) -> torch.Tensor:
        """Return the vectors of the entities."""
        received = torch.relu(self.layer(self.entities, self.pairs))
        return self.entities + torch.nn.functional.dropout(received, 0.3, self.training)

    def scores(self, vectors: torch.Tensor, queries: torch.Tensor) -> torch.Tensor:
        """Return the scores of all entities as the tails of queries (head, relation and a tail)."""
        head, relation, _ = queries.T
        return (vectors[head] * self.relations[relation]) @ vectors.T


def train(triples: Triples, *, epochs: int, batch: int = 1024) -> Model:
    """Return a model that tells the tail of each triple from all entities."""
    torch.manual_seed(0)
    model = Model(triples)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(epochs):
        for chosen in torch.randperm(len(triples.train)).split(batch):
            optimizer.zero_grad()
            queries = triples.train[chosen]
            scores = model.scores(model.encode(), queries)
            torch.nn.functional.cross_entropy(scores, queries[:, 2], label_smoothing=0.1).backward()
            optimizer.step()
    return model.eval()


def frequencies(triples: Triples) -> torch.Tensor:
    """Return how often entities are tails of each relation (relations by entities): the baseline."""
    _, relation, tail = triples.train.T
    counts = torch.zeros(triples.relations, triples.entities)
    return counts.index_put_((relation, tail), torch.ones(len(tail)), accumulate=True)


@torch.no_grad()
def filtered_mrr(triples: Triples, scores: Scores, *, batch: int = 1024) -> float:
    """Return the mean reciprocal rank of the tails of the test triples; equal scores count one half."""
    stored: dict[tuple[int, int], list[int]] = {}
    for head, relation, tail in torch.cat([triples.train, triples.test]).tolist():
        stored.setdefault((head, relation), []).append(tail)
    total = 0.0
    for queries in triples.test.split(batch):
        scored = scores(queries)
        wanted = scored.gather(1, queries[:, 2:])
        for row, (head, relation, _) in zip(scored, queries.tolist(), strict=True):
            row[stored[head, relation]] = -torch.inf
        rank = 1 + (scored > wanted).sum(1) + 0.5 * (scored == wanted).sum(1)
        total += float((1 / rank).sum())
    return total / len(triples.test)


def compare_scores(triples: Triples, *, epochs: int) -> dict[str, float]:
    """Return the filtered MRR of the baseline and of the model."""
    counts = frequencies(triples)
    model = train(triples, epochs=epochs)
    scores = partial(model.scores, model.encode().detach())
    return {
        "frequencies of tails": filtered_mrr(triples, lambda queries: counts[queries[:, 1]]),
        "RGCN and DistMult": filtered_mrr(triples, scores),
    }


if __name__ == "__main__":
    TRIPLES = stored_triples(sys.argv[1]) if len(sys.argv) > 1 else generated_triples()
    print(f"{len(TRIPLES.train)} queries for training, {len(TRIPLES.test)} for the test")
    print(f"{'':24}filtered MRR")
    for NAME, MRR in compare_scores(TRIPLES, epochs=10).items():
        print(f"{NAME:24}{MRR:12.3f}")
