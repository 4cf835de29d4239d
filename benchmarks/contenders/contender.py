"""The record of a contender, and its interface: it prepares a case once and returns the call to time.

The modules of this folder run in processes of their own, possibly in different environments: they import
their library, NumPy, SciPy and `benchmarks.operator_case`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from benchmarks.operator_case import OperatorCase

if TYPE_CHECKING:
    # Interpreters of other contenders have no gossamer.
    from gossamer_support.arrays import Array

PRODUCTS = ("spmm", "spmv", "bsr_spmm")

ContenderCall: TypeAlias = Callable[[], object]


class UnavailableError(Exception):
    """A contender cannot take part; the message says why."""


class Prepared(NamedTuple):
    """The call to time. `activate` prepares it before samples (its number of threads). `result` makes a call
    and returns its result, for a contender that does not write to `OperatorCase.out`. `conversion` is the
    time in seconds in which the contender has converted the matrix from CSR."""

    call: ContenderCall
    activate: ContenderCall = lambda: None
    result: Callable[[], Array] | None = None
    conversion: float | None = None


Prepare: TypeAlias = Callable[[OperatorCase, int], Prepared]
"""Prepares a case for a number of threads, or raises `UnavailableError` or ImportError."""


class Contender(NamedTuple):
    """A contender: a function of a module of this folder that prepares cases.

    `ops` are the operators that it has. It takes part in those of `usual` (by default all of them) unless
    contenders were chosen. `packages` are those whose versions are recorded, `environment` further variables
    of its process. One that is not `threaded` is measured once for all numbers of threads.
    """

    module: str
    ops: tuple[str, ...]
    function: str = "prepare"
    usual: tuple[str, ...] | None = None
    packages: tuple[str, ...] = ()
    environment: Mapping[str, str] = MappingProxyType({})
    threaded: bool = True

    def takes_part(self, op: str) -> bool:
        """Return whether it takes part in an operator unless contenders were chosen."""
        return op in (self.ops if self.usual is None else self.usual)
