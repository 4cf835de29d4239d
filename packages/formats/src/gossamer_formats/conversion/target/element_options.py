"""Options of a conversion by kernels."""

from __future__ import annotations

from typing import NamedTuple

from gossamer_machine.machine import Machine


class ElementOptions(NamedTuple):
    """`drop_zeros` leaves out elements whose value is zero; `requires_order` refuses elements that are not
    sorted as the target says; `index_dtype=None` is int32; `in_one_kernel` refuses storages that need
    several kernels; `adds_repeated` adds elements with equal coordinates, which are refused otherwise;
    `threads` is the number of threads that kernels should be written for, and `machine` what they run on."""

    drop_zeros: bool
    index_dtype: str | None
    wants_permutation: bool
    requires_order: bool = True
    in_one_kernel: bool = False
    adds_repeated: bool = False
    threads: int = 1
    machine: Machine = Machine()
