"""The entry point of the plugin: it only registers the backend."""

from __future__ import annotations

from collections.abc import Sequence

from gossamer_backend.plugin_api import Backend, hookimpl
from gossamer_cuda_mma_sp.backend import CudaBackend


@hookimpl
def gossamer_backends() -> Sequence[Backend]:
    """Return the backend for NVIDIA GPUs."""
    return (CudaBackend(),)
