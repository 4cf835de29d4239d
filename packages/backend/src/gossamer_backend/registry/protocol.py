"""The protocol of backends: the attributes and methods of each.

Hooks only register backends. `compile` needs no device, so that the generated code can be tested on any
machine; `load` may need one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, runtime_checkable

import msgspec
import numpy as np

from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import Target
from gossamer_ir.nodes import Module
from gossamer_support.arrays import Array

if TYPE_CHECKING:
    from gossamer_backend.arguments.device import Device
    from gossamer_backend.artifact import Artifact
    from gossamer_backend.call.kernel import Kernel
    from gossamer_machine.machine import Machine

P = ParamSpec("P")

API_VERSION = 2
"""The version of this protocol; plugins written for another version are refused."""


class Probe(msgspec.Struct, frozen=True):
    """The result of probing a target: `usable` if it works on this machine, otherwise the reason.

    `resolved` is the target with everything explicit that depends on the machine (its CPU, its features), so
    that cache keys differ between machines; None if there is nothing to add.

    >>> Probe(is_usable=True, resolved="toy:cpu=x86-64-v3").resolved
    'toy:cpu=x86-64-v3'
    """

    is_usable: bool
    reason: str | None = None
    resolved: str | None = None

    @staticmethod
    def from_error(error: ArgumentError) -> Probe:
        """Return that a target is not usable, because of an error in its options.

        >>> from gossamer_ir.errors import ArgumentError
        >>> Probe.from_error(ArgumentError("toy.cpu", "There is no CPU 'x'.", hint="Give cpu=host.")).reason
        "There is no CPU 'x'. Give cpu=host."
        """
        (diagnostic,) = error.diagnostics
        return Probe(is_usable=False, reason=f"{diagnostic.message} {diagnostic.hint}".strip())


def errors_are_reasons(probe: Callable[P, Probe]) -> Callable[P, Probe]:
    """Return `Backend.probe` as it must be: an `ArgumentError` about the options of a target becomes the
    reason why the target is not usable. A decorator for backends that raise such errors.

    >>> from gossamer_ir.errors import ArgumentError
    >>> class Toy:
    ...     @errors_are_reasons
    ...     def probe(self, target):
    ...         raise ArgumentError("toy.cpu", "There is no CPU 'x'.")
    >>> Toy().probe(Target("toy"))
    Probe(is_usable=False, reason="There is no CPU 'x'.", resolved=None)
    """

    @wraps(probe)
    def wrapper(*args: P.args, **keywords: P.kwargs) -> Probe:
        try:
            return probe(*args, **keywords)
        except ArgumentError as error:
            return Probe.from_error(error)

    return wrapper


@runtime_checkable
class Backend(Protocol):
    """Compiles flat modules to kernels, and loads them. The recipe `docs/extending/backend.md` says which
    test checks each member."""

    @property
    def name(self) -> str:
        """The name of the entry point that registers the backend, and the first part of its targets."""

    @property
    def api_version(self) -> int:
        """The `API_VERSION` for which the backend was written."""

    @property
    def version(self) -> str:
        """The version of the plugin and of its code generator; part of the object key."""

    @property
    def capabilities(self) -> frozenset[str]:
        """Words of the table `CAPABILITIES`, for what it can compile; modules that need others are refused
        before `compile` is called."""

    def targets(self) -> tuple[str, ...]:
        """Return targets to offer to users, the default first."""

    def probe(self, target: Target) -> Probe:
        """Return whether `load` works for a target on this machine; never raises for a valid target.
        `errors_are_reasons` makes a probe of the errors of options."""

    def machine(self, target: Target) -> Machine:
        """Return the machine of a resolved target, for which rules schedule programs; needs no device."""

    def compile(self, module: Module, target: Target) -> Artifact:
        """Compile a flat module, without a device."""

    def load(self, artifact: Artifact) -> Kernel:
        """Make an artifact of this backend callable on this machine."""


@runtime_checkable
class NativeFunctions(Protocol):
    """An optional ability of backends: which of the declared functions (`call.<function>`) a target has
    instructions for."""

    def instructions(self, target: Target) -> frozenset[str]:
        """Return the functions that need not be lowered to arithmetic for a target."""


@runtime_checkable
class DeviceArrays(Protocol):
    """An optional ability of backends whose kernels run on a device: to make arrays there. Operators make
    their results by it; without it, callers have to pass `out`."""

    def new_array(self, shape: tuple[int, ...], dtype: np.dtype[Any], *, device: Device) -> object:
        """Return a new array on a device, stored by rows, which exports its memory; its elements may have any
        values."""

    def to_device(self, array: Array, *, device: Device) -> object:
        """Return a copy of an array of NumPy on a device, for kernels on its default stream."""


@runtime_checkable
class DeviceTargets(Protocol):
    """An optional ability of backends whose kernels run on a device: to name the target for its arrays.
    Callers who have such arrays find the backend by it."""

    def device_target(self, device: Device) -> str | None:
        """Return the target whose kernels take arrays of a device; None for another kind of device."""


class ExportParts(msgspec.Struct, frozen=True):
    """The files that a backend writes for an artifact, and entries of their manifest.

    `files` are the name and the contents of each file by its role (`ptx`), `missing` the reason for each that
    this machine cannot make. `manifest` are entries of the manifest, which JSON can hold.

    >>> ExportParts({"ptx": ("f.ptx", b"// PTX")}, {"cubin": "no ptxas was found"}).manifest
    {}
    """

    files: Mapping[str, tuple[str, bytes]]
    missing: Mapping[str, str] = {}
    manifest: Mapping[str, Any] = {}


@runtime_checkable
class ArtifactExport(Protocol):
    """An optional ability of backends whose artifacts are not object files: to export them."""

    def export_parts(self, artifact: Artifact, *, symbol: str) -> ExportParts:
        """Return the files of an artifact, whose names and kernels begin with a symbol."""


@runtime_checkable
class SourceInspection(Protocol):
    """An optional ability of backends: to show the generated code."""

    def texts(self, module: Module, target: Target) -> Mapping[str, str]:
        """Return the text of a flat module at each further stage, such as `llvm` and `asm`, in order."""
