"""Checks of a module and a target before a backend compiles them."""

from __future__ import annotations

from typing import Protocol

from gossamer_backend.registry.capabilities import required_capabilities
from gossamer_ir.errors import ArgumentError, PluginError
from gossamer_ir.interchange.records import Target
from gossamer_ir.nodes import Module


class DeclaresCapabilities(Protocol):
    """The attributes of a backend that these checks use."""

    @property
    def name(self) -> str: ...

    @property
    def capabilities(self) -> frozenset[str]: ...


def require_compilable(backend: DeclaresCapabilities, module: Module, target: Target) -> None:
    """Check that a backend can compile a module for a target; `Backend.compile` calls this first.

    Raises `ArgumentError` if the target is another backend's (`backend.target`) or the module is not flat
    (`backend.stage`), `VerifyError` if it breaks a rule of its stage, and `PluginError` with the missing
    words if it needs a capability that the backend did not declare.

    >>> from types import SimpleNamespace
    >>> from gossamer_ir.nodes import Function, Param
    >>> entry = Function("f", (Param("a", "float32"),), ())
    >>> backend = SimpleNamespace(name="toy", capabilities=frozenset({"while"}))
    >>> require_compilable(backend, Module("flat", (entry,), "f"), Target("toy"))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    gossamer_support.errors.PluginError: The backend 'toy' did not declare ...: dtype.float32. [...]
    """
    require_own_target(backend, target)
    if module.stage != "flat":
        raise ArgumentError(
            "backend.stage",
            f"Backends compile flat modules, this one is of stage '{module.stage}'.",
            hint="Lower it first.",
        )
    require_declared(backend, module)
    from gossamer_ir.verify import verify  # only where something is compiled

    verify(module)


def require_own_target(backend: DeclaresCapabilities, target: Target) -> None:
    """Raise `ArgumentError` (`backend.target`) if the target is another backend's."""
    if target.backend != backend.name:
        raise ArgumentError(
            "backend.target", f"'{target.text}' is not a target of the backend '{backend.name}'."
        )


def require_declared(backend: DeclaresCapabilities, module: Module) -> None:
    """Raise `PluginError` if the module needs a capability that the backend did not declare."""
    missing = required_capabilities(module) - backend.capabilities
    if missing:
        raise PluginError(
            "plugin.undeclared",
            f"The backend '{backend.name}' did not declare what the module needs: "
            f"{', '.join(sorted(missing))}.",
        )
