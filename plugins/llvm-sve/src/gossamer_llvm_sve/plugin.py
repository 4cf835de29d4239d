"""The entry point of the plugin: it only registers the backend and its intrinsics."""

from __future__ import annotations

from collections.abc import Sequence

from gossamer_backend.plugin_api import Backend, hookimpl
from gossamer_ir.interchange.records import Intrinsic
from gossamer_llvm_sve.backend import LlvmSve
from gossamer_llvm_sve.sme.intrinsics import sme_intrinsics


@hookimpl
def gossamer_backends() -> Sequence[Backend]:
    """Return the backend of this plugin."""
    return (LlvmSve(),)


@hookimpl
def gossamer_intrinsics() -> Sequence[Intrinsic]:
    """Return the products of blocks that use SME."""
    return sme_intrinsics()
