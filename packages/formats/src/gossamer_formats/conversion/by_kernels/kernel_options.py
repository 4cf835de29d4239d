"""Options of a conversion by kernels."""

from __future__ import annotations

from typing import NamedTuple

from gossamer_machine.machine import Machine


class KernelOptions(NamedTuple):
    """Options of a conversion by kernels."""

    drops_zeros: bool
    """Leave out elements whose value is zero."""
    index_dtype: str | None
    """None is int32."""
    wants_permutation: bool
    requires_order: bool = True
    """Refuse elements that are not sorted as the destination says."""
    needs_one_kernel: bool = False
    """Refuse storages that need several kernels."""
    adds_repeated: bool = False
    """Add elements with equal coordinates, which are refused otherwise."""
    threads: int = 1
    """The number of threads that kernels should be written for."""
    machine: Machine = Machine()
    """The machine that kernels run on."""
