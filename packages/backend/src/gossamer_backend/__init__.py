"""Hook specifications, plugin registry, artifacts, caches, kernels and their call protocol."""

from gossamer_backend.artifact import Artifact
from gossamer_backend.kernel import BoundKernel, Kernel
from gossamer_backend.native import Workspace
from gossamer_backend.protocol import API_VERSION, Backend, Probe

__all__ = ["API_VERSION", "Artifact", "Backend", "BoundKernel", "Kernel", "Probe", "Workspace"]
