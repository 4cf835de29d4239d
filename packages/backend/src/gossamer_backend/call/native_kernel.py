"""Kernels whose code is a function in the memory of this process, and calls bound to their arguments."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import NoReturn

import msgspec
import numpy as np

from gossamer_backend.arguments.argument_checker import ArgumentChecker, ArgumentValue
from gossamer_backend.arguments.array_view import address
from gossamer_backend.artifact import Artifact
from gossamer_backend.call.abi import (
    Parallelism,
    ParallelismSource,
    Workspace,
    one_thread,
    parameter_types,
    workspace_of,
)
from gossamer_backend.call.context import CallContext, require_host_context
from gossamer_backend.call.native_plan import NativePlan
from gossamer_backend.call.plan_source import function_of_integers, keep_workspace, workspaces
from gossamer_ir.errors import ArgumentError, InternalError
from gossamer_ir.facts.index_arrays import FactChecker
from gossamer_ir.interchange.kernel_abi import INTERRUPTED, OUT_OF_BOUNDS, OUT_OF_MEMORY
from gossamer_ir.interchange.records import Signature
from gossamer_support.arrays import Array

_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int64)
_POINTER = ctypes.c_void_p


class NativeKernel:
    """The `Kernel` of an artifact whose code is at an address of this process.

    `address` is that of the function `gossamer_kernel`. `parallelism` is called before each run; it returns
    the number of threads and the functions that run them and that long loops ask whether to stop. If a loop
    was stopped, the call raises what `interruption` returns. `keep_alive` are objects that own the code.
    `emulator` is the name of the program that emulates the machine of the kernel, None if it is this machine.

    Arrays are C-contiguous NumPy arrays of the signature's dtypes and shapes (or flat ones of the same size).
    A call releases the GIL. Several threads may call a kernel at once if they write different arrays. No
    array may be changed by other threads during a call: the contents of index arrays are checked before, and
    a change after the check can make the kernel access memory out of bounds. A `SparseTensor`'s arrays
    cannot be changed.

    >>> import ctypes, numpy as np
    >>> from gossamer_backend import Artifact, NativeKernel
    >>> from gossamer_ir.core.build import index_var
    >>> from gossamer_ir.interchange.records import BufferParam, ScalarParam, Signature
    >>> x = BufferParam("x", "X", "float64", (index_var("n"),), is_read=True, is_written=True)
    >>> signature = Signature("double", (x,), (ScalarParam("n", "int64"),), ("x", "n"))
    >>> from gossamer_backend.call.abi import prototype
    >>> @prototype(signature)
    ... def double(x, n, workspace):
    ...     values = (ctypes.c_double * n).from_address(x)
    ...     values[:] = [2 * value for value in values]
    ...     return 0
    >>> address = ctypes.cast(double, ctypes.c_void_p).value
    >>> artifact = Artifact("toy", "1.0", "toy", signature, b"")
    >>> kernel = NativeKernel(artifact, address, keep_alive=(double,))
    >>> values = np.array([1.0, 2.0])
    >>> kernel(x=values)
    >>> values
    array([2., 4.])
    """

    def __init__(
        self,
        artifact: Artifact,
        address: int,
        *,
        parallelism: ParallelismSource = one_thread,
        interruption: Callable[[], BaseException] = KeyboardInterrupt,
        keep_alive: tuple[object, ...] = (),
        emulator: str | None = None,
    ) -> None:
        self.artifact = artifact
        self.function = _FUNCTION(address)
        self.parallelism = parallelism
        self.emulator = emulator
        self._interruption = interruption
        self._of_integers: Callable[..., int] | None = None
        # The code must not be freed as long as the kernel can be called.
        self._keep_alive = keep_alive
        self._argument_checker = ArgumentChecker(artifact.signature)
        self._types = dict(
            zip(artifact.signature.order, parameter_types(artifact.signature), strict=True)
        )

    @property
    def signature(self) -> Signature:
        """The parameters of the kernel."""
        return self.artifact.signature

    def set_fact_checker(self, check: FactChecker) -> None:
        """Use `check` as a fast check of index arrays, as `Kernel.set_fact_checker` says."""
        self._argument_checker.set_fact_checker(check)

    def __call__(
        self, *args: ArgumentValue, context: CallContext | None = None, **kwargs: ArgumentValue
    ) -> None:
        """Check the arguments and run."""
        require_host_context(context, self.signature.entry)
        self._bind(args, kwargs)()

    def bind(
        self,
        *args: ArgumentValue,
        verified: Collection[str] = (),
        check: bool = False,
        context: CallContext | None = None,
        **kwargs: ArgumentValue,
    ) -> NativeCall:
        """Return a call with these arguments, as `Kernel.bind` says."""
        require_host_context(context, self.signature.entry)
        return self._bind(args, kwargs, verified=() if check else verified)

    def run_trusted(self, *args: ArgumentValue, context: CallContext | None = None) -> None:
        """Run with all arguments in order, none of which is checked, as `Kernel.run_trusted` says."""
        require_host_context(context, self.signature.entry)
        if len(args) != len(self._types):
            raise TypeError(
                f"The kernel takes {len(self._types)} arguments; {len(args)} were passed."
            )
        if self._of_integers is None:
            self._of_integers = function_of_integers(self)
        parallelism = self.parallelism()
        of, workspace, at, _ = workspaces.kept
        if of is not parallelism or workspace is None:
            _, workspace, at, _ = keep_workspace(parallelism)
        prepared = [address(value) if isinstance(value, np.ndarray) else value for value in args]
        status = self._of_integers(*prepared, at)
        if status:
            self.raise_status(status, workspace.failed_buffer)

    def plan(
        self,
        *,
        pointers: Sequence[str],
        scalars: Sequence[str],
        passed: Sequence[str],
        context: CallContext | None = None,
    ) -> NativePlan:
        """Return a plan for fast calls with new arrays for the parameters `passed`; see `NativePlan`."""
        require_host_context(context, self.signature.entry)
        return NativePlan(self, pointers=pointers, scalars=scalars, passed=passed)

    def raise_status(self, status: int, failed: int) -> NoReturn:
        """Raise the error for a status; `failed` is the index of the buffer whose bounds check failed."""
        if status == INTERRUPTED:
            raise self._interruption()
        _raise_status(status, failed, self.artifact)

    def _bind(
        self,
        args: tuple[ArgumentValue, ...],
        kwargs: Mapping[str, ArgumentValue],
        *,
        verified: Collection[str] = (),
    ) -> NativeCall:
        checked = self._argument_checker.check(args, kwargs, verified=verified)
        prepared = [
            kind(checked.views[name].address if kind is _POINTER else checked.values[name])
            for name, kind in self._types.items()
        ]
        return NativeCall(self, tuple(prepared), checked.values)


class _PreparedCall(msgspec.Struct, frozen=True):
    """A call with its workspace, for one number of threads and one function that runs them."""

    parallelism: Parallelism
    workspace: Workspace
    call: partial[int]


class NativeCall:
    """The `BoundCall` of a native kernel: its code with its arguments as ctypes passes them."""

    __slots__ = ("_parallelism", "_ready", "_values", "kernel", "prepared_arguments")

    def __init__(
        self,
        kernel: NativeKernel,
        prepared: tuple[object, ...],
        values: Mapping[str, Array | int | float | bool],
    ) -> None:
        self.kernel = kernel
        self.prepared_arguments = prepared
        self._values = values
        self._parallelism = kernel.parallelism
        self._ready = self._prepare_call(kernel.parallelism())

    @property
    def arguments(self) -> Mapping[str, Array | int | float | bool]:
        """The value of each parameter, in order."""
        return {name: self._values[name] for name in self.kernel.signature.order}

    def __call__(self) -> None:
        """Run the kernel; raise `ArgumentError` (`kernel.out_of_bounds`) if a bounds check failed,
        `MemoryError` if the kernel could not allocate."""
        # Read once: another thread may exchange `_ready` at any time.
        ready, parallelism = self._ready, self._parallelism()
        if ready.parallelism != parallelism:
            ready = self._ready = self._prepare_call(parallelism)
        status = ready.call()
        if status:
            self.kernel.raise_status(status, ready.workspace.failed_buffer)

    def _prepare_call(self, parallelism: Parallelism) -> _PreparedCall:
        workspace = workspace_of(parallelism)
        reference = ctypes.byref(workspace)
        call = partial(self.kernel.function, *self.prepared_arguments, reference)
        return _PreparedCall(parallelism, workspace, call)


def _raise_status(status: int, failed: int, artifact: Artifact) -> NoReturn:
    if status == OUT_OF_MEMORY:
        raise MemoryError(
            f"The kernel '{artifact.signature.entry}' could not allocate its buffers."
        )
    # Several threads may fail at once; the field then has the number of any one of them.
    if status == OUT_OF_BOUNDS and 0 <= failed < len(artifact.bounds_checked_buffers):
        raise ArgumentError(
            "kernel.out_of_bounds",
            f"The kernel '{artifact.signature.entry}' stopped before it would have accessed "
            f"'{artifact.bounds_checked_buffers[failed]}' out of bounds.",
            hint="Check the index arrays; the output is incomplete.",
        )
    raise InternalError(
        f"The kernel '{artifact.signature.entry}' returned the unknown status {status} "
        f"(failed buffer {failed})."
    )
