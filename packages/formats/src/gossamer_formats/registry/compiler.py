"""The compiler of the kernels of conversions, the number of their threads and the machine that runs them,
which distribution `gossamer` registers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

from gossamer_ir.nodes import Module
from gossamer_machine.machine import Machine
from gossamer_support.plugins import groups
from gossamer_support.plugins.named_objects import NamedObjects


class ConversionKernel(Protocol):
    """A kernel of a conversion."""

    @property
    def run_trusted(self) -> Callable[..., Any]:
        """Runs the kernel with arguments in the order of the parameters, which are not checked."""


Compile: TypeAlias = Callable[[Module], ConversionKernel]
"""Compiles a module of one function to a kernel."""

COMPILERS: NamedObjects[Callable[..., Any]] = NamedObjects(
    groups.COMPILER_GROUP.name,
    "compiler",
    expected="a function",
    is_valid=lambda value, name: callable(value),
)


def find_compiler() -> Compile | None:
    """Return the function that compiles a module, or None if no installed distribution has one."""
    return COMPILERS.find("compile")


def thread_count() -> int:
    """Return the number of threads that kernels may use; 1 if no installed distribution knows."""
    find_count = COMPILERS.find("threads")
    return 1 if find_count is None else find_count()


def find_machine() -> Machine:
    """Return the machine that runs kernels; the default machine if no installed distribution knows."""
    find = COMPILERS.find("machine")
    return Machine() if find is None else find()
