"""The entry point of the plugin: it only registers the backend and its intrinsics."""

from __future__ import annotations

from collections.abc import Sequence

from gossamer_backend.plugin_api import Backend, hookimpl
from gossamer_cuda_mma_sp.backend import CudaBackend
from gossamer_cuda_mma_sp.intrinsics.block_intrinsics import block_intrinsic
from gossamer_cuda_mma_sp.intrinsics.n_m_intrinsics import n_m_intrinsic
from gossamer_cuda_mma_sp.intrinsics.product_intrinsics import PRODUCT_INTRINSICS
from gossamer_ir.interchange.records import Intrinsic


@hookimpl
def gossamer_backends() -> Sequence[Backend]:
    """Return the backend for NVIDIA GPUs."""
    return (CudaBackend(),)


@hookimpl
def gossamer_intrinsics() -> Sequence[Intrinsic]:
    """Return the products of blocks and of 2:4 matrices that use tensor cores."""
    return tuple(
        n_m_intrinsic(product) if product.is_sparse else block_intrinsic(product)
        for product in PRODUCT_INTRINSICS
    )
