"""Hook specifications, plugin registry, artifacts, caches, kernels and their call protocol.

The names below are imported on first access: most programs neither write plugins nor export kernels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gossamer_support.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from gossamer_backend.arguments.device import HOST, Device
    from gossamer_backend.artifact import Artifact
    from gossamer_backend.cache.artifact_cache import ArtifactCache, CacheInfo, CacheWarning
    from gossamer_backend.cache.keys import object_key, program_key, request_key
    from gossamer_backend.cache.versions import package_versions
    from gossamer_backend.call.abi import Workspace
    from gossamer_backend.call.context import CallContext
    from gossamer_backend.call.joint_plan import JointPlan
    from gossamer_backend.call.kernel import BoundCall, CallPlan, Kernel
    from gossamer_backend.call.native_kernel import NativeCall, NativeKernel
    from gossamer_backend.call.threads import follow_num_threads, get_num_threads, set_num_threads
    from gossamer_backend.compiled_checks.compiled_check import GeneratedCheck
    from gossamer_backend.registry.capabilities import is_capability, required_capabilities
    from gossamer_backend.registry.installed_backends import (
        BackendInfo,
        ExtensionInfo,
        PluginWarning,
        Registry,
    )
    from gossamer_backend.registry.protocol import API_VERSION, Backend, Probe
    from gossamer_ir.facts.index_arrays import FactChecker

_HOMES = {
    "API_VERSION": "gossamer_backend.registry.protocol",
    "Artifact": "gossamer_backend.artifact",
    "ArtifactCache": "gossamer_backend.cache.artifact_cache",
    "Backend": "gossamer_backend.registry.protocol",
    "BackendInfo": "gossamer_backend.registry.installed_backends",
    "BoundCall": "gossamer_backend.call.kernel",
    "CacheInfo": "gossamer_backend.cache.artifact_cache",
    "CacheWarning": "gossamer_backend.cache.artifact_cache",
    "CallContext": "gossamer_backend.call.context",
    "CallPlan": "gossamer_backend.call.kernel",
    "Device": "gossamer_backend.arguments.device",
    "ExtensionInfo": "gossamer_backend.registry.installed_backends",
    "FactChecker": "gossamer_ir.facts.index_arrays",
    "GeneratedCheck": "gossamer_backend.compiled_checks.compiled_check",
    "HOST": "gossamer_backend.arguments.device",
    "JointPlan": "gossamer_backend.call.joint_plan",
    "Kernel": "gossamer_backend.call.kernel",
    "NativeCall": "gossamer_backend.call.native_kernel",
    "NativeKernel": "gossamer_backend.call.native_kernel",
    "PluginWarning": "gossamer_backend.registry.installed_backends",
    "Probe": "gossamer_backend.registry.protocol",
    "Registry": "gossamer_backend.registry.installed_backends",
    "Workspace": "gossamer_backend.call.abi",
    "follow_num_threads": "gossamer_backend.call.threads",
    "get_num_threads": "gossamer_backend.call.threads",
    "is_capability": "gossamer_backend.registry.capabilities",
    "object_key": "gossamer_backend.cache.keys",
    "package_versions": "gossamer_backend.cache.versions",
    "program_key": "gossamer_backend.cache.keys",
    "request_key": "gossamer_backend.cache.keys",
    "required_capabilities": "gossamer_backend.registry.capabilities",
    "set_num_threads": "gossamer_backend.call.threads",
}

__all__ = [
    "API_VERSION",
    "Artifact",
    "ArtifactCache",
    "Backend",
    "BackendInfo",
    "BoundCall",
    "CacheInfo",
    "CacheWarning",
    "CallContext",
    "CallPlan",
    "Device",
    "ExtensionInfo",
    "FactChecker",
    "GeneratedCheck",
    "HOST",
    "JointPlan",
    "Kernel",
    "NativeCall",
    "NativeKernel",
    "PluginWarning",
    "Probe",
    "Registry",
    "Workspace",
    "follow_num_threads",
    "get_num_threads",
    "is_capability",
    "object_key",
    "package_versions",
    "program_key",
    "request_key",
    "required_capabilities",
    "set_num_threads",
]

__getattr__, __dir__ = lazy_exports(__name__, _HOMES)
