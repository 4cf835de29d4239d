"""The entry point of the plugin: it only registers the backend and its intrinsics."""

from __future__ import annotations

from collections.abc import Sequence

from gossamer_backend.plugin_api import Backend, hookimpl
from gossamer_generic_cpu.backend import GenericCpu
from gossamer_generic_cpu.codegen.intrinsics import intrinsics
from gossamer_ir.interchange.records import Intrinsic


@hookimpl
def gossamer_backends() -> Sequence[Backend]:
    """Return the backend of this plugin."""
    return (GenericCpu(),)


@hookimpl
def gossamer_intrinsics() -> Sequence[Intrinsic]:
    """Return its micro-kernels."""
    return intrinsics()
