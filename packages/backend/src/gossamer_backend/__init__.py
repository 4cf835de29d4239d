"""Hook specifications, plugin registry, artifacts, caches, kernels and their call protocol."""

from gossamer_backend.arguments.device import HOST, Device
from gossamer_backend.artifact import Artifact
from gossamer_backend.cache.artifact_cache import ArtifactCache, CacheInfo, CacheWarning
from gossamer_backend.cache.keys import name_key, object_key, request_key
from gossamer_backend.cache.versions import package_versions
from gossamer_backend.call.abi import Workspace
from gossamer_backend.call.context import CallContext
from gossamer_backend.call.joint_plan import JointPlan
from gossamer_backend.call.kernel import BoundCall, CallPlan, Kernel
from gossamer_backend.call.native_kernel import NativeCall, NativeKernel
from gossamer_backend.call.threads import get_num_threads, set_num_threads
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
    "get_num_threads",
    "is_capability",
    "name_key",
    "object_key",
    "package_versions",
    "request_key",
    "required_capabilities",
    "set_num_threads",
]
