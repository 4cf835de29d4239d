"""A wrapper that checks arguments and results of a plugin's backend."""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer_backend.arguments.device import Device
from gossamer_backend.artifact import Artifact
from gossamer_backend.call.kernel import Kernel
from gossamer_backend.registry.protocol import (
    ArtifactExport,
    Backend,
    DeviceArrays,
    DeviceTargets,
    ExportParts,
    NativeFunctions,
    Probe,
    SourceInspection,
)
from gossamer_backend.registry.requirements import require_compilable, require_own_target
from gossamer_ir.errors import PluginError
from gossamer_ir.interchange.records import Target
from gossamer_ir.nodes import Module
from gossamer_machine.machine import Machine
from gossamer_support.arrays import Array


class ValidatingBackend:
    """The backend of a plugin as the registry returns it: modules are checked against its declarations, and
    its results are checked. It is a `Backend` itself."""

    def __init__(self, backend: Backend) -> None:
        self.wrapped = backend
        self.name = backend.name
        self.api_version = backend.api_version
        self.version = backend.version
        self.capabilities = backend.capabilities

    def targets(self) -> tuple[str, ...]:
        """Return targets to offer to users, the default first."""
        return self.wrapped.targets()

    def probe(self, target: Target) -> Probe:
        """Return whether the target works on this machine."""
        require_own_target(self, target)
        return self.wrapped.probe(target)

    def machine(self, target: Target) -> Machine:
        """Return the machine of a resolved target; raise `PluginError` (`plugin.machine`) if the backend
        returns something else, or one with scalable vectors, which it does not declare."""
        require_own_target(self, target)
        machine = self.wrapped.machine(target)
        if not isinstance(machine, Machine):
            raise PluginError(
                "plugin.machine",
                f"The backend '{self.name}' describes the machine of '{target.text}' by {machine!r}; "
                "expected a gossamer_machine.Machine.",
            )
        if machine.is_scalable and "vectors.scalable" not in self.capabilities:
            raise PluginError(
                "plugin.machine",
                f"The backend '{self.name}' describes a machine with scalable vectors without the "
                "capability vectors.scalable.",
            )
        return machine

    def instructions(self, target: Target) -> frozenset[str]:
        """Return the declared functions that a target has instructions for."""
        require_own_target(self, target)
        words = (word.partition(".") for word in self.capabilities)
        declared = frozenset(name for kind, _, name in words if kind == "call")
        if not isinstance(self.wrapped, NativeFunctions):
            return declared
        return declared & self.wrapped.instructions(target)

    def compile(self, module: Module, target: Target) -> Artifact:
        """Compile a flat module.

        `PluginError` if the module needs a capability that was not declared, `ArgumentError` if it is not
        flat or the target is another backend's, `VerifyError` if it is invalid.
        """
        require_compilable(self, module, target)
        return self._required_artifact(self.wrapped.compile(module, target))

    def texts(self, module: Module, target: Target) -> dict[str, str]:
        """Return the text of a flat module at each further stage (`llvm`, `asm`); {} if the backend shows
        none. Errors as in `compile`."""
        require_compilable(self, module, target)
        if not isinstance(self.wrapped, SourceInspection):
            return {}
        return dict(self.wrapped.texts(module, target))

    def new_array(
        self, shape: tuple[int, ...], dtype: np.dtype[Any], *, device: Device
    ) -> object | None:
        """Return a new array on a device; None if the backend makes none."""
        if not isinstance(self.wrapped, DeviceArrays):
            return None
        return self.wrapped.new_array(shape, dtype, device=device)

    def to_device(self, array: Array, *, device: Device) -> object | None:
        """Return a copy of an array of NumPy on a device; None if the backend makes none."""
        if not isinstance(self.wrapped, DeviceArrays):
            return None
        return self.wrapped.to_device(array, device=device)

    def device_target(self, device: Device) -> str | None:
        """Return the target for arrays of a device; None if the backend names none."""
        if not isinstance(self.wrapped, DeviceTargets):
            return None
        return self.wrapped.device_target(device)

    def export_parts(self, artifact: Artifact, *, symbol: str) -> ExportParts | None:
        """Return the files of an artifact; None if they are those of an object file."""
        if not isinstance(self.wrapped, ArtifactExport):
            return None
        return self.wrapped.export_parts(artifact, symbol=symbol)

    def load(self, artifact: Artifact) -> Kernel:
        """Make an artifact callable.

        `PluginError` if another backend or version made it (`plugin.other_artifact`), or if the backend
        returns something that is not a kernel (`plugin.kernel`).
        """
        if (artifact.backend, artifact.backend_version) != (self.name, self.version):
            raise PluginError(
                "plugin.other_artifact",
                f"The backend '{self.name}' {self.version} cannot load an artifact of "
                f"'{artifact.backend}' {artifact.backend_version}.",
            )
        kernel = self.wrapped.load(artifact)
        if not isinstance(kernel, Kernel):
            raise PluginError(
                "plugin.kernel",
                f"The backend '{self.name}' loaded an artifact as an object of the type "
                f"'{type(kernel).__qualname__}', which is not a kernel.",
                hint="Return a NativeKernel, or an object with the members of the protocol Kernel.",
            )
        return kernel

    def _required_artifact(self, artifact: Artifact) -> Artifact:
        if not isinstance(artifact, Artifact) or artifact.backend != self.name:
            raise PluginError(
                "plugin.no_artifact",
                f"The backend '{self.name}' compiled a module to something that is not an artifact "
                "of its own.",
            )
        return artifact
