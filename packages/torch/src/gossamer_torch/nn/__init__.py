"""Layers of sparse models, with the arguments that users of PyTorch and PyG know."""

from __future__ import annotations

from gossamer_torch.nn.attention_masks import band_mask, bigbird_mask, ragged_mask
from gossamer_torch.nn.gat_conv import GATConv
from gossamer_torch.nn.gcn_conv import GCNConv
from gossamer_torch.nn.mixture_of_experts import MixtureOfExperts
from gossamer_torch.nn.ragged_attention import RaggedAttention
from gossamer_torch.nn.rgcn_conv import RelationPairs, RGCNConv, relation_pairs
from gossamer_torch.nn.sage_conv import SAGEConv
from gossamer_torch.nn.sparse_attention import SparseAttention
from gossamer_torch.nn.sparse_conv3d import KernelMap, SparseConv3d, kernel_map
from gossamer_torch.nn.sparse_linear import SparseLinear

__all__ = [
    "GATConv",
    "GCNConv",
    "KernelMap",
    "MixtureOfExperts",
    "RGCNConv",
    "RaggedAttention",
    "RelationPairs",
    "SAGEConv",
    "SparseAttention",
    "SparseConv3d",
    "SparseLinear",
    "band_mask",
    "bigbird_mask",
    "kernel_map",
    "ragged_mask",
    "relation_pairs",
]
