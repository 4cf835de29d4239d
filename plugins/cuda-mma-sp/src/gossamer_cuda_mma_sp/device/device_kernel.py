"""Kernels on arrays of a GPU."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

from gossamer_backend.plugin_api import (
    NOT_GUARDED,
    ArgumentChecker,
    ArrayView,
    Artifact,
    CallContext,
    FixedArguments,
    MatchedArguments,
    evaluate_size,
    view_of,
)
from gossamer_cuda_mma_sp.device.device_array import DeviceArray, GpuMemory
from gossamer_cuda_mma_sp.device.gpu_device import GpuDevice
from gossamer_cuda_mma_sp.device.host_program import HostProgram
from gossamer_cuda_mma_sp.device.stream_handles import stream_handle
from gossamer_cuda_mma_sp.device_code import DeviceCode
from gossamer_ir import scratch_layout
from gossamer_ir.errors import ArgumentError
from gossamer_ir.facts.index_arrays import FactChecker
from gossamer_ir.interchange.records import Signature
from gossamer_support.arrays import Array


class DeviceKernel:
    """The `Kernel` of an artifact on arrays of a GPU: those of PyTorch, CuPy, PyCUDA and Numba, and
    `DeviceArray`s. They are not copied.

    A call puts its kernels on the stream of the context, by default on the default stream, and returns before
    they have run. Launches of a bound call allocate and wait for nothing, so they can be captured in a graph,
    for whose life the bound call must be kept. A bounds check that fails is reported by a later call of the
    kernel, or by `run_trusted`, since a call does not wait.
    """

    emulator = None

    def __init__(self, artifact: Artifact, gpu: GpuDevice) -> None:
        code = DeviceCode.decode(artifact.code)
        self.artifact, self.gpu = artifact, gpu
        self.program = HostProgram(code, gpu)
        self.memory = GpuMemory(gpu)
        self.layout = {
            part.buffer.name: part.offset for part in scratch_layout(code.module).buffers
        }
        self._checker = ArgumentChecker(artifact.signature, memory=self.memory)

    @property
    def signature(self) -> Signature:
        """The parameters of the kernel."""
        return self.artifact.signature

    def set_fact_checker(self, check: FactChecker) -> None:
        """Use `check` as a fast check of index arrays, as `Kernel.set_fact_checker` says."""
        self._checker.set_fact_checker(check)

    def __call__(self, *args: Any, context: CallContext | None = None, **kwargs: Any) -> None:
        """Check the arguments and put the kernel on the stream."""
        self.bind(*args, context=context, **kwargs)()

    def bind(
        self,
        *args: Any,
        verified: Collection[str] = (),
        check: bool = False,
        context: CallContext | None = None,
        **kwargs: Any,
    ) -> DeviceCall:
        """Return a call with these arguments, as `Kernel.bind` says. It may wait, and allocates."""
        required = self._required_context(context)
        checked = self._checker.check(
            args,
            kwargs,
            verified=() if check else verified,
            # The default stream has no number in DLPack's protocol that the driver has, too.
            stream=required.stream or None,
        )
        return DeviceCall(self, checked, required)

    def run_trusted(self, *args: Any, context: CallContext | None = None) -> None:
        """Run with all arguments in order, none of which is checked, and wait, as `Kernel.run_trusted`
        says."""
        order = self.signature.order
        if len(args) != len(order):
            raise TypeError(f"The kernel takes {len(order)} arguments; {len(args)} were passed.")
        required = self._required_context(context)
        values = dict(zip(order, args, strict=True))
        views = {
            param.name: view_of(values[param.name], name=param.name, stream=required.stream or None)
            for param in self.signature.buffers
        }
        DeviceCall(self, MatchedArguments(values, views), required)()
        self.memory.wait(required.stream)
        self.require_in_bounds("The kernel")

    def plan(
        self,
        *,
        pointers: Sequence[str],
        scalars: Sequence[str],
        passed: Sequence[str],
        context: CallContext | None = None,
    ) -> DevicePlan:
        """Return a plan, which leaves all calls to `bind`."""
        return DevicePlan(self, len(passed) - 1)

    def require_in_bounds(self, what: str) -> None:
        """Raise `ArgumentError` (`kernel.out_of_bounds`) if a bounds check failed in a call that is done."""
        failed = self.program.failed_buffer()
        if failed != NOT_GUARDED:
            raise ArgumentError(
                "kernel.out_of_bounds",
                f"{what} '{self.signature.entry}' stopped before it would have accessed "
                f"'{self.artifact.bounds_checked_buffers[failed]}' out of bounds.",
                hint="Check the index arrays; the output is incomplete.",
            )

    def _required_context(self, context: CallContext | None) -> CallContext:
        """Return the context with the handle of its stream; refuse that of another device."""
        wanted = CallContext(self.gpu.device) if context is None else context
        if wanted.device != self.gpu.device:
            raise ArgumentError(
                "kernel.context",
                f"The kernel '{self.signature.entry}' runs on '{self.gpu.device.text}', and the context is "
                f"one of the device '{wanted.device.text}'.",
                hint="Give the target another device=, or the context this one.",
            )
        return wanted._replace(stream=stream_handle(wanted.stream))


class DeviceCall:
    """A kernel with its arguments on a stream, as steps that are repeated."""

    def __init__(
        self, kernel: DeviceKernel, checked: MatchedArguments, context: CallContext
    ) -> None:
        self.kernel, self._checked = kernel, checked
        self._stream = stream_handle(context.stream)
        self._memory: list[object] = []
        for value in checked.values.values():
            if isinstance(value, DeviceArray):
                value.use_on(self._stream)
        buffers = kernel.signature.buffers
        scalars = {param.name: checked.values[param.name] for param in kernel.signature.scalars}
        self._scratch = self._provided_scratch(context, scalars)
        arrays = _Elements({p.buffer: checked.views[p.name] for p in buffers}, self)
        with kernel.gpu.calling(f"The kernel '{kernel.signature.entry}'"):
            self._steps = kernel.program.steps(
                scalars,
                {param.name: checked.views[param.name].address for param in buffers},
                arrays=arrays,
                allocate=lambda name, size: self._allocate(name, size, scalars),
            )
            kernel.program.prepare(self._steps, stream=self._stream)

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The value of each parameter, in order."""
        return {name: self._checked.values[name] for name in self.kernel.signature.order}

    def __call__(self) -> None:
        """Put the kernel on the stream; raise the error of an earlier call, if one failed."""
        self.kernel.require_in_bounds("An earlier call of")
        self.kernel.program.run(self._steps, stream=self._stream)

    def elements(self, view: ArrayView) -> Array:
        """Return a copy of an array, when the work on the stream is done."""
        self.kernel.memory.wait(self._stream)
        return self.kernel.memory.to_host(view)

    def _provided_scratch(self, context: CallContext, scalars: Mapping[str, Any]) -> int | None:
        """Return the address of the scratch memory that the context provides; None if it provides none."""
        size = self.kernel.signature.scratch
        if size is None or context.scratch is None:
            return None
        array = context.scratch(evaluate_size(size, scalars, arrays={}))
        self._memory.append(array)
        return view_of(array, name="the scratch memory", stream=self._stream or None).address

    def _allocate(self, name: str, size: int, scalars: Mapping[str, Any]) -> int:
        """Return the address of memory for a buffer of the program."""
        offset = self.kernel.layout.get(name)
        if self._scratch is not None and offset is not None:
            return self._scratch + int(evaluate_size(offset, scalars, arrays={}))
        what = f"The buffer '{name}' of '{self.kernel.signature.entry}'"
        block = self.kernel.gpu.allocate(max(size, 1), stream=self._stream, what=what)
        self._memory.append(block)
        return block.address


class _Elements(dict[str, Array]):
    """The arrays of a call by the names of their buffers, copied to the host when a size is read."""

    def __init__(self, views: Mapping[str, ArrayView], call: DeviceCall) -> None:
        super().__init__()
        self._views, self._call = views, call

    def __missing__(self, buffer_name: str) -> Array:
        self[buffer_name] = array = self._call.elements(self._views[buffer_name])
        return array


class DevicePlan:
    """A plan for arrays of NumPy, which no kernel of a GPU accepts."""

    def __init__(self, kernel: DeviceKernel, inputs: int) -> None:
        self.kernel, self.inputs = kernel, inputs

    def run(self, fixed: FixedArguments, *arrays: Any) -> None:
        """Return None: `Kernel.bind` makes the call."""

    def bind(self, fixed: FixedArguments) -> Callable[..., None]:
        """Return a function that returns None, as `run` does."""
        return partial(self.run, fixed)
