"""What a backend is: an object with these attributes and methods.

Hooks only register; behaviour is here. `compile` needs no device, so that the code a plugin makes
can be tested on any machine; `load` does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import msgspec

from gossamer_ir.interchange.records import Target
from gossamer_ir.nodes import Module

if TYPE_CHECKING:
    from gossamer_backend.artifact import Artifact
    from gossamer_backend.call.kernel import Kernel

API_VERSION = 1
"""The version of this protocol; a plugin that was written for another one is refused."""


class Probe(msgspec.Struct, frozen=True):
    """Whether a target works on this machine and, where not, why.

    `resolved` is the target with everything that the machine decided made explicit (its CPU, its
    features), so that cache keys made from it differ between machines; "" where there is nothing to
    add.
    """

    usable: bool
    reason: str = ""
    resolved: str = ""


@runtime_checkable
class Backend(Protocol):
    """Turns flat modules into kernels. See `capabilities` for the words of `capabilities`."""

    @property
    def name(self) -> str:
        """The name of the entry point that registers it, and the first part of its targets."""

    @property
    def api_version(self) -> int:
        """The `API_VERSION` it was written for."""

    @property
    def version(self) -> str:
        """The version of the plugin and of what generates its code; part of the object key."""

    @property
    def capabilities(self) -> frozenset[str]:
        """What it can compile; anything else is refused before it is asked."""

    def targets(self) -> tuple[str, ...]:
        """Targets worth offering, the default first."""

    def probe(self, target: Target) -> Probe:
        """Whether `load` would work for target on this machine; never raises for a valid target."""

    def compile(self, module: Module, target: Target) -> Artifact:
        """Compiles a flat module; needs no device."""

    def load(self, artifact: Artifact) -> Kernel:
        """Makes an artifact of this backend callable on this machine."""


@runtime_checkable
class NativeFunctions(Protocol):
    """What a backend may offer besides: which of the functions that it declares (`call.<function>`)
    one of its targets has."""

    def instructions(self, target: Target) -> frozenset[str]:
        """The functions that need not be lowered to arithmetic for a target."""


@runtime_checkable
class SourceInspection(Protocol):
    """What a backend may offer besides: the code it makes, for people to read."""

    def texts(self, module: Module, target: Target) -> Mapping[str, str]:
        """The text of a flat module at each further stage, such as `llvm` and `asm`, in order."""
