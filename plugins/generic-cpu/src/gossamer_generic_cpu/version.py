"""The version of the plugin."""

from __future__ import annotations

from gossamer_backend.plugin_api import combined_version


def plugin_version() -> str:
    """Return the versions of the plugin, of the host runtime, of the emitter and of llvmlite,
    which contains LLVM."""
    return combined_version(
        "gossamer-generic-cpu", "gossamer-host-runtime", "gossamer-llvm", "llvmlite"
    )
