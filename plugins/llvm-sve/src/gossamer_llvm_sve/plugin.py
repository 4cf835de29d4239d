"""The entry point of the plugin for Arm: it only registers the backend and its intrinsics."""

from __future__ import annotations

from collections.abc import Sequence

from gossamer_backend.plugin_api import Backend, hookimpl
from gossamer_ir.interchange.records import Intrinsic
from gossamer_llvm_sve.backend import ScalableBackend
from gossamer_llvm_sve.sme_intrinsics import sme_intrinsics
from gossamer_llvm_sve.vector_extension import SVE


@hookimpl
def gossamer_backends() -> Sequence[Backend]:
    """Return the backend for Arm SVE."""
    return (ScalableBackend(SVE),)


@hookimpl
def gossamer_intrinsics() -> Sequence[Intrinsic]:
    """Return the products of blocks that use SME."""
    return sme_intrinsics()
