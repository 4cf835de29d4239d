"""Interface for plugins: hooks, the protocol of backends, the ABI of kernels, and shared state.

Plugins import names from here, never from the other modules of the package, which may move between releases.
The table "Modules for plugins" in `docs/plugins.md` lists the modules of all packages that plugins import.

A name is imported when it is first used.

* Hooks: `hookimpl`, and what they return (`Backend`, `Pass`, `ScheduleRule`)
* The protocol: `API_VERSION`, `Artifact`, `Kernel`, `Probe`, and the optional `NativeFunctions`,
  `DeviceArrays`, `DeviceTargets`, `SourceInspection` and `ArtifactExport`, which returns `ExportParts`
* Kernels: `NativeKernel` for code in the memory of this process, `python_kernel` for `PythonCode`, which
  returns a `CallOutcome`, and what others return: `BoundCall`, and `CallPlan`, which takes `FixedArguments`
* Calls: `CallContext` with a `Device` (`HOST` is this process), a stream and a `ScratchAllocator`
* Arguments: `ArgumentChecker` for a kernel whose arrays are in a `Memory`, its `MatchedArguments`,
  `view_of`, which returns the `ArrayView` of an array of any package, and `exported_capsule` for
  `__dlpack__`
* Checks and versions: `require_compilable`, `required_capabilities`, `errors_are_reasons` for `probe`,
  `package_versions`, `combined_version`
* The ABI: `KERNEL_SYMBOL`, the statuses `OK`, `OUT_OF_BOUNDS`, `OUT_OF_MEMORY` and `INTERRUPTED`,
  `NOT_GUARDED`, `Workspace`, `prototype`, `evaluate_size` for the shapes in a signature,
  and `numpy_dtype` for its arrays
* Threads: `Parallelism`, `ParallelismSource`, `MAX_THREADS`, `available_cpus`, `get_num_threads`
* State that is shared with gossamer: `ArtifactCache`, and `compiling`, which keeps forks out
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gossamer_support.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from gossamer_backend.arguments.argument_checker import ArgumentChecker, MatchedArguments
    from gossamer_backend.arguments.array_checks import numpy_dtype
    from gossamer_backend.arguments.array_view import ArrayView
    from gossamer_backend.arguments.device import HOST, Device
    from gossamer_backend.arguments.dlpack_export import exported_capsule
    from gossamer_backend.arguments.memory import Memory
    from gossamer_backend.arguments.size_equations import evaluate_size
    from gossamer_backend.arguments.view_of import view_of
    from gossamer_backend.artifact import Artifact
    from gossamer_backend.cache.artifact_cache import ArtifactCache
    from gossamer_backend.cache.versions import combined_version, package_versions
    from gossamer_backend.call.abi import Parallelism, ParallelismSource, Workspace, prototype
    from gossamer_backend.call.context import CallContext, ScratchAllocator
    from gossamer_backend.call.kernel import BoundCall, CallPlan, FixedArguments, Kernel
    from gossamer_backend.call.native_kernel import NativeKernel
    from gossamer_backend.call.python_kernel import CallOutcome, PythonCode, python_kernel
    from gossamer_backend.call.threads import MAX_THREADS, available_cpus, get_num_threads
    from gossamer_backend.registry.capabilities import required_capabilities
    from gossamer_backend.registry.hookspecs import Pass, ScheduleRule, hookimpl
    from gossamer_backend.registry.protocol import (
        API_VERSION,
        ArtifactExport,
        Backend,
        DeviceArrays,
        DeviceTargets,
        ExportParts,
        NativeFunctions,
        Probe,
        SourceInspection,
        errors_are_reasons,
    )
    from gossamer_backend.registry.requirements import require_compilable
    from gossamer_ir.interchange.kernel_abi import (
        INTERRUPTED,
        KERNEL_SYMBOL,
        NOT_GUARDED,
        OK,
        OUT_OF_BOUNDS,
        OUT_OF_MEMORY,
    )

_HOMES = {
    "API_VERSION": "gossamer_backend.registry.protocol",
    "ArgumentChecker": "gossamer_backend.arguments.argument_checker",
    "ArrayView": "gossamer_backend.arguments.array_view",
    "Artifact": "gossamer_backend.artifact",
    "ArtifactCache": "gossamer_backend.cache.artifact_cache",
    "ArtifactExport": "gossamer_backend.registry.protocol",
    "Backend": "gossamer_backend.registry.protocol",
    "BoundCall": "gossamer_backend.call.kernel",
    "CallContext": "gossamer_backend.call.context",
    "CallOutcome": "gossamer_backend.call.python_kernel",
    "CallPlan": "gossamer_backend.call.kernel",
    "Device": "gossamer_backend.arguments.device",
    "DeviceArrays": "gossamer_backend.registry.protocol",
    "DeviceTargets": "gossamer_backend.registry.protocol",
    "ExportParts": "gossamer_backend.registry.protocol",
    "FixedArguments": "gossamer_backend.call.kernel",
    "HOST": "gossamer_backend.arguments.device",
    "INTERRUPTED": "gossamer_ir.interchange.kernel_abi",
    "KERNEL_SYMBOL": "gossamer_ir.interchange.kernel_abi",
    "Kernel": "gossamer_backend.call.kernel",
    "MAX_THREADS": "gossamer_backend.call.threads",
    "MatchedArguments": "gossamer_backend.arguments.argument_checker",
    "Memory": "gossamer_backend.arguments.memory",
    "NOT_GUARDED": "gossamer_ir.interchange.kernel_abi",
    "NativeFunctions": "gossamer_backend.registry.protocol",
    "NativeKernel": "gossamer_backend.call.native_kernel",
    "OK": "gossamer_ir.interchange.kernel_abi",
    "OUT_OF_BOUNDS": "gossamer_ir.interchange.kernel_abi",
    "OUT_OF_MEMORY": "gossamer_ir.interchange.kernel_abi",
    "Parallelism": "gossamer_backend.call.abi",
    "ParallelismSource": "gossamer_backend.call.abi",
    "Pass": "gossamer_backend.registry.hookspecs",
    "Probe": "gossamer_backend.registry.protocol",
    "PythonCode": "gossamer_backend.call.python_kernel",
    "ScheduleRule": "gossamer_backend.registry.hookspecs",
    "ScratchAllocator": "gossamer_backend.call.context",
    "SourceInspection": "gossamer_backend.registry.protocol",
    "Workspace": "gossamer_backend.call.abi",
    "available_cpus": "gossamer_backend.call.threads",
    "combined_version": "gossamer_backend.cache.versions",
    "errors_are_reasons": "gossamer_backend.registry.protocol",
    "evaluate_size": "gossamer_backend.arguments.size_equations",
    "exported_capsule": "gossamer_backend.arguments.dlpack_export",
    "get_num_threads": "gossamer_backend.call.threads",
    "hookimpl": "gossamer_backend.registry.hookspecs",
    "numpy_dtype": "gossamer_backend.arguments.array_checks",
    "package_versions": "gossamer_backend.cache.versions",
    "prototype": "gossamer_backend.call.abi",
    "python_kernel": "gossamer_backend.call.python_kernel",
    "require_compilable": "gossamer_backend.registry.requirements",
    "required_capabilities": "gossamer_backend.registry.capabilities",
    "view_of": "gossamer_backend.arguments.view_of",
}

__all__ = [
    "API_VERSION",
    "ArgumentChecker",
    "ArrayView",
    "Artifact",
    "ArtifactCache",
    "ArtifactExport",
    "Backend",
    "BoundCall",
    "CallContext",
    "CallOutcome",
    "CallPlan",
    "Device",
    "DeviceArrays",
    "DeviceTargets",
    "ExportParts",
    "FixedArguments",
    "HOST",
    "INTERRUPTED",
    "KERNEL_SYMBOL",
    "Kernel",
    "MAX_THREADS",
    "MatchedArguments",
    "Memory",
    "NOT_GUARDED",
    "NativeFunctions",
    "NativeKernel",
    "OK",
    "OUT_OF_BOUNDS",
    "OUT_OF_MEMORY",
    "Parallelism",
    "ParallelismSource",
    "Pass",
    "Probe",
    "PythonCode",
    "ScheduleRule",
    "ScratchAllocator",
    "SourceInspection",
    "Workspace",
    "available_cpus",
    "combined_version",
    "errors_are_reasons",
    "evaluate_size",
    "exported_capsule",
    "get_num_threads",
    "hookimpl",
    "numpy_dtype",
    "package_versions",
    "prototype",
    "python_kernel",
    "require_compilable",
    "required_capabilities",
    "view_of",
]

__getattr__, __dir__ = lazy_exports(__name__, _HOMES)
