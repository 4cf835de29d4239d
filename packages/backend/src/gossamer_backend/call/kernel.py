"""The protocol of kernels: what a backend loads, and gossamer calls.

`NativeKernel` is the one for code in the memory of this process. A backend whose code runs elsewhere, such as
on a device with its own memory, has classes of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from gossamer_backend.arguments.argument_checker import ArgumentValue
from gossamer_backend.artifact import Artifact
from gossamer_backend.call.context import CallContext
from gossamer_ir.facts.index_arrays import FactChecker
from gossamer_ir.interchange.records import Signature
from gossamer_support.arrays import Array


class BoundCall(Protocol):
    """A kernel with its arguments, which were checked: `bound()` runs it with little overhead.

    It holds references to its arrays. Two threads may run one bound call at once only if the kernel may write
    the same values twice.
    """

    @property
    def kernel(self) -> Kernel:
        """The kernel that is called."""

    @property
    def arguments(self) -> Mapping[str, ArgumentValue]:
        """The value of each parameter, in order."""

    def __call__(self) -> None:
        """Run the kernel; errors are those of `Kernel.__call__` except for invalid arguments."""


class FixedArguments(NamedTuple):
    """Arguments that a plan does not check: the addresses of arrays (`pointers`), integers (`scalars`), and
    the addresses after the `ends` of the arrays. The caller keeps the arrays alive.

    `check` is None if the contents were checked before. Otherwise a plan calls it with these arguments, and
    with the address of the workspace, directly before each run of the kernel; it returns whether the
    contents are valid."""

    pointers: tuple[int, ...]
    scalars: tuple[int, ...]
    ends: tuple[int, ...]
    check: Callable[[FixedArguments, int], bool] | None


class CallPlan(Protocol):
    """`plan.run(fixed, inputs, output)` runs a kernel with arrays that are checked quickly, and returns the
    output.

    `fixed` are `FixedArguments` for the parameters `pointers` and `scalars` of the plan. `inputs`, a tuple,
    and `output` are the arrays for the parameters `passed`, in this order. The output may be None; it is then
    allocated. Parameters that the kernel lacks are ignored, so that several kernels share one
    `FixedArguments`.

    `run` returns None, without having run the kernel, for another number of inputs, for arrays in any form
    other than the usual one, and if the `check` of the fixed arguments fails: the caller then makes the call
    by `Kernel.bind`, which raises the error. A plan has no state, so any number of threads may use it at once
    with different outputs.
    """

    @property
    def kernel(self) -> Kernel:
        """The kernel that is called."""

    @property
    def run(self) -> Callable[..., Array | None]:
        """The function, which is read once and called many times."""

    def bind(self, fixed: FixedArguments) -> Callable[..., Array | None]:
        """Return a function of the inputs and the output alone, for many calls with the same fixed
        arguments."""


@runtime_checkable
class Kernel(Protocol):
    """A loaded artifact: `kernel(*values, **values)` checks its arguments and runs.

    Values are given in the order of the signature or by name; sizes that follow from the shape of an array
    may be left out. `ArgumentError` reports invalid arguments; nothing was written then.
    """

    @property
    def artifact(self) -> Artifact:
        """The artifact that was loaded; `gossamer.export` writes its code."""

    @property
    def signature(self) -> Signature:
        """The parameters of the kernel, those of the artifact."""

    @property
    def emulator(self) -> str | None:
        """The name of the program that emulates the machine of the kernel; None if nothing does."""

    def set_fact_checker(self, check: FactChecker) -> None:
        """Use `check` as a fast check of index arrays; if it returns False, they are checked as without
        it."""

    def __call__(
        self, *args: ArgumentValue, context: CallContext | None = None, **kwargs: ArgumentValue
    ) -> None:
        """Check the arguments and run, in a context of the kernel's device, by default on its default stream.

        A parameter of the program that is named like an option, such as `context`, is given by position.
        Raises `ArgumentError` for an argument that is invalid, and (`kernel.out_of_bounds`) if a bounds check
        failed; `MemoryError` if the kernel could not allocate.
        """

    def bind(
        self,
        *args: ArgumentValue,
        verified: Collection[str] = (),
        check: bool = False,
        context: CallContext | None = None,
        **kwargs: ArgumentValue,
    ) -> BoundCall:
        """Return a call with these arguments, which are checked once, that can be made any number of times in
        a context.

        `verified` names array parameters whose contents the caller has already checked against the
        signature's facts (and has made read-only). The contents of the others are checked here; they must
        not be changed as long as the bound call is used. With `check`, the contents of all are checked:
        `ArgumentError` has the position of the first element that violates a fact or a declared relation.
        """

    def run_trusted(self, *args: ArgumentValue, context: CallContext | None = None) -> None:
        """Run with all arguments in order, none of which is checked; return when the kernel has run, also on
        a stream, so that its errors are raised here.

        For programs that allocate their own arrays: these must be C-contiguous, have the dtypes and sizes of
        the signature, contents with its facts, and be disjoint. Otherwise the call reads and writes memory
        out of bounds. Raises `TypeError` for another number of arguments.
        """

    def plan(
        self,
        *,
        pointers: Sequence[str],
        scalars: Sequence[str],
        passed: Sequence[str],
        context: CallContext | None = None,
    ) -> CallPlan:
        """Return a plan for fast calls in a context with new arrays for the parameters `passed`."""
