"""The problems of all models, in the order of measurement."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec

from benchmarks.matrices import MissingMatrixError
from benchmarks.models import (
    graph_convolution,
    masked_attention,
    pruned_layer,
    relational_convolution,
    voxel_convolution,
)
from benchmarks.models.model_case import TRAINING
from benchmarks.models.model_problem import MODEL_STEPS, ModelProblem


class Model(msgspec.Struct, frozen=True):
    """A model on several data sets, with the wanted geometric mean and least of its ratios, and the steps
    that they are about."""

    name: str
    data: tuple[str, ...]
    problem: Callable[..., ModelProblem]
    mean: float
    least: float = 1.0
    steps: tuple[str, ...] = MODEL_STEPS
    channels: tuple[int, ...] = ()
    """Further arguments of `problem`, of which each makes a problem of its own."""

    def problems(self) -> Iterator[ModelProblem]:
        """Yield the problems whose data are available."""
        for name in self.data:
            for arguments in self._arguments():
                try:
                    yield self.problem(name, *arguments)
                except MissingMatrixError:
                    continue

    def _arguments(self) -> tuple[tuple[int, ...], ...]:
        return tuple((one,) for one in self.channels) or ((),)


ONLY_TRAINING = (TRAINING,)
MODELS = (
    Model("gcn", graph_convolution.GRAPHS, graph_convolution.gcn_problem, 1.5, steps=ONLY_TRAINING),
    Model(
        "graphsage",
        graph_convolution.GRAPHS,
        graph_convolution.sage_problem,
        1.5,
        steps=ONLY_TRAINING,
    ),
    Model("rgcn", relational_convolution.GRAPHS, relational_convolution.rgcn_problem, 2.0),
    Model("attention", masked_attention.MASKS, masked_attention.attention_problem, 2.0),
    Model("pruned", pruned_layer.LAYERS, pruned_layer.pruned_problem, 1.0),
    Model(
        "convolution",
        voxel_convolution.SCANS,
        voxel_convolution.convolution_problem,
        1.5,
        channels=voxel_convolution.CHANNELS,
    ),
)
MODEL_NAMES = tuple(model.name for model in MODELS)


def chosen_models(names: Sequence[str] | None) -> tuple[Model, ...]:
    """Return the models of some names, by default all."""
    return tuple(model for model in MODELS if names is None or model.name in names)
