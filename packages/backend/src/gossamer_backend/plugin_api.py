"""Interface for plugins: hooks, the protocol of backends, the ABI of kernels, and shared state.

Plugins import names from here, never from the other modules of the package, which may move between releases.
The table "Modules for plugins" in `docs/plugins.md` lists the modules of all packages that plugins import.

* Hooks: `hookimpl`, and what they return (`Backend`, `Pass`, `ScheduleRule`)
* The protocol: `API_VERSION`, `Artifact`, `Kernel`, `Probe`, and the optional `NativeFunctions`,
  `DeviceArrays`, `SourceInspection` and `ArtifactExport`, which returns `ExportParts`
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
from gossamer_backend.call.kernel import BoundCall, CallPlan, Kernel
from gossamer_backend.call.native_kernel import NativeKernel
from gossamer_backend.call.native_plan import FixedArguments
from gossamer_backend.call.python_kernel import CallOutcome, PythonCode, python_kernel
from gossamer_backend.call.threads import MAX_THREADS, available_cpus, get_num_threads
from gossamer_backend.registry.capabilities import required_capabilities
from gossamer_backend.registry.hookspecs import Pass, ScheduleRule, hookimpl
from gossamer_backend.registry.protocol import (
    API_VERSION,
    ArtifactExport,
    Backend,
    DeviceArrays,
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
