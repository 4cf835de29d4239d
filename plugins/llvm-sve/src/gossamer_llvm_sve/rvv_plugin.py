"""The entry point of the plugin for RISC-V: it only registers the backend."""

from __future__ import annotations

from collections.abc import Sequence

from gossamer_backend.plugin_api import Backend, hookimpl
from gossamer_llvm_sve.backend import ScalableBackend
from gossamer_llvm_sve.vector_extension import RVV


@hookimpl
def gossamer_backends() -> Sequence[Backend]:
    """Return the backend for RISC-V."""
    return (ScalableBackend(RVV),)
