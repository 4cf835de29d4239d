"""The contenders for models, by name. Each runs in a process of its own.

`torch` uses sparse matrices in CSR, products by relation or offset with `index_add_`, and dense attention
with a mask; `torch_dense` has zeros in pruned weights. `pyg` gets edges, `pyg_matrix` a matrix in CSR.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from benchmarks.contenders.contender import Contender

if TYPE_CHECKING:
    # The process that starts contenders may have no torch.
    from benchmarks.model_contenders.model_steps import PrepareModel

OUR_LAYERS = "gossamer_torch"
GRAPH_MODELS = ("gcn", "graphsage")
PYG = ("torch", "torch_geometric")
MODEL_CONTENDERS = {
    OUR_LAYERS: Contender(
        "gossamer_layers",
        (*GRAPH_MODELS, "rgcn", "attention", "pruned", "convolution"),
        packages=("gossamer", "torch"),
    ),
    "torch": Contender(
        "torch_layers",
        (*GRAPH_MODELS, "rgcn", "attention", "pruned", "convolution"),
        packages=("torch",),
    ),
    "torch_dense": Contender("torch_dense", ("pruned",)),
    "flex_attention": Contender("flex_attention", ("attention",)),
    "pyg": Contender("pyg", (*GRAPH_MODELS, "rgcn"), packages=PYG),
    "pyg_compiled": Contender("pyg", (*GRAPH_MODELS, "rgcn"), "prepare_compiled"),
    "pyg_matrix": Contender("pyg", GRAPH_MODELS, "prepare_matrix"),
    "pyg_fast": Contender("pyg", ("rgcn",), "prepare_fast_rgcn"),
}


def load_prepare_model(name: str) -> PrepareModel:
    """Import the function of a contender; an ImportError if its library is not installed."""
    contender = MODEL_CONTENDERS[name]
    module = import_module(f"benchmarks.model_contenders.{contender.module}")
    prepare: PrepareModel = getattr(module, contender.function)
    return prepare
