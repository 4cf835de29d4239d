"""Kernels of the device, and calls that are bound to their arguments."""

import numpy as np

from acme_separate.memory import DEVICE, STORAGE, SeparateAddresses, SeparateArray, to_device
from acme_separate.plan import SeparatePlan
from acme_separate.scratch import with_provided_scratch
from acme_separate.stream import DEFAULT
from gossamer_backend.plugin_api import (
    ArgumentChecker,
    CallContext,
    evaluate_size,
    numpy_dtype,
    view_of,
)
from gossamer_ir import loads, scratch_layout
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interpret import GuardFailed
from gossamer_ir.interpret.program import InterpretedKernel


class SeparateKernel:
    """A kernel on arrays of the device. With `copies`, arrays of NumPy are copied to the device before each
    call, which then returns when those that it writes have been copied back."""

    emulator = None

    def __init__(self, artifact, *, copies):
        self.artifact, self.copies = artifact, copies
        module = loads(artifact.code)
        self._layout = scratch_layout(module)
        runnable = with_provided_scratch(module, self._layout)
        self._program = InterpretedKernel(runnable, vscale=1, chunks=1)
        self._checker = ArgumentChecker(artifact.signature, memory=SeparateAddresses())

    @property
    def signature(self):
        return self.artifact.signature

    def set_fact_checker(self, check):
        self._checker.set_fact_checker(check)

    def __call__(self, *args, context=None, **kwargs):
        self.bind(*args, context=context, **kwargs)()

    def bind(self, *args, verified=(), check=False, context=None, **kwargs):
        context, copied = required_context(context), Copied()
        if self.copies:
            args = tuple(map(copied.on_device, args))
            kwargs = {name: copied.on_device(value) for name, value in kwargs.items()}
        verified = () if check else verified
        checked = self._checker.check(args, kwargs, verified=verified, stream=context.stream)
        return SeparateCall(self, checked, context, copied)

    def run_trusted(self, *args, context=None):
        if len(args) != len(self.signature.order):
            raise TypeError(
                f"The kernel takes {len(self.signature.order)} arguments; {len(args)} were passed."
            )
        context, copied = required_context(context), Copied()
        args = [copied.on_device(value) for value in args] if self.copies else args
        arguments = {
            name: value.address if isinstance(value, SeparateArray) else value
            for name, value in zip(self.signature.order, args, strict=True)
        }
        self.put(arguments, self.scratch(arguments, context), context.stream)
        context.stream.synchronize()
        copied.copy_back()

    def plan(self, *, pointers, scalars, passed, context=None):
        return SeparatePlan(self, pointers, scalars, passed, required_context(context))

    def scratch(self, arguments, context):
        """Return the view of the scratch memory of a call; None if it needs none."""
        if self.signature.scratch is None:
            return None
        size = evaluate_size(self.signature.scratch, arguments, arrays={})
        return view_of(context.scratch(size), name="the scratch memory", stream=context.stream)

    def put(self, arguments, scratch, stream):
        """Put the kernel on a stream; `given` has addresses of the device, and scalars."""
        stream.put(lambda: self._interpret(arguments, None if scratch is None else scratch.address))

    def _interpret(self, arguments, scratch):
        arrays = DeviceElements(self.signature, arguments)
        values = dict(arguments)
        values |= {param.name: arrays[param.buffer] for param in self.signature.buffers}
        for part in self._layout.buffers:
            at = scratch + evaluate_size(part.offset, arguments, arrays={})
            shape = [evaluate_size(size, arguments, arrays={}) for size in part.buffer.shape]
            values[part.buffer.name] = STORAGE.elements(at, shape, part.buffer.dtype)
        try:
            self._program.run(values)
        except GuardFailed as error:
            raise ArgumentError(
                "kernel.out_of_bounds",
                f"The kernel '{self.signature.entry}' stopped before it would have accessed "
                f"'{error.buffer}' out of bounds.",
            ) from None


class SeparateCall:
    """A kernel with addresses of the device, on a stream."""

    def __init__(self, kernel, checked, context, copied):
        self.kernel, self._context, self._copied = kernel, context, copied
        # The views keep the memory alive.
        self._found = checked
        self._given = dict(checked.values)
        self._given |= {name: view.address for name, view in checked.views.items()}
        self._scratch = kernel.scratch(self._given, context)

    @property
    def arguments(self):
        values = self._found.values
        return {name: self._copied.original(values[name]) for name in self.kernel.signature.order}

    def __call__(self):
        stream = self._context.stream
        self._copied.copy_again()
        self.kernel.put(self._given, self._scratch, stream)
        if self._copied.pairs:
            stream.synchronize()
            self._copied.copy_back()


class Copied:
    """Arrays of the host, and their copies on the device."""

    def __init__(self):
        self.pairs = []

    def on_device(self, value):
        if type(value) is not np.ndarray:
            return value
        copy = to_device(value)
        self.pairs.append((value, copy))
        return copy

    def original(self, value):
        return next((host for host, copy in self.pairs if copy is value), value)

    def copy_again(self):
        for host, copy in self.pairs:
            STORAGE.elements(copy.address, copy.shape, copy.dtype)[...] = host

    def copy_back(self):
        for host, copy in self.pairs:
            if host.flags.writeable:
                host[...] = STORAGE.elements(copy.address, copy.shape, copy.dtype)


class DeviceElements(dict):
    """The arrays of a call as the device sees them, by buffer; a size may be an element of another one."""

    def __init__(self, signature, arguments):
        super().__init__()
        self._params, self._given = {param.buffer: param for param in signature.buffers}, arguments

    def __missing__(self, buffer_name):
        param = self._params[buffer_name]
        shape = [evaluate_size(size, self._given, arrays=self) for size in param.shape]
        self[buffer_name] = STORAGE.elements(self._given[param.name], shape, numpy_dtype(param))
        return self[buffer_name]


def required_context(context):
    """Return the context with a stream and a source of scratch memory; refuse that of another device."""
    context = CallContext(DEVICE) if context is None else context
    if context.device != DEVICE:
        raise ArgumentError(
            "kernel.context",
            f"The kernel runs on '{DEVICE.text}', and the context is one of '{context.device.text}'.",
        )
    return context._replace(
        stream=DEFAULT if context.stream is None else context.stream,
        scratch=context.scratch or (lambda size: SeparateArray((size,), np.uint8)),
    )
