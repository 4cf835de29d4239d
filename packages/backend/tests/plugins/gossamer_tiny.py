"""A complete plugin: `tiny-interpreter` "compiles" a flat module to its encoded text and interprets it."""

import ctypes

import numpy as np

from gossamer_backend.plugin_api import (
    OK,
    OUT_OF_BOUNDS,
    Artifact,
    NativeKernel,
    Pass,
    Probe,
    evaluate_size,
    hookimpl,
    prototype,
    require_compilable,
)
from gossamer_ir import dumps, loads, signature_of
from gossamer_ir.interchange.records import Intrinsic, Schedule
from gossamer_ir.interpret import GuardFailed, run
from gossamer_ir.nodes import Guard
from gossamer_ir.traversal.walk import walk
from gossamer_machine import Machine


class TinyInterpreter:
    name = "tiny-interpreter"
    api_version = 2
    version = "0.1"
    capabilities = frozenset({"dtype.float32", "dtype.float64", "dtype.int32", "guard"})

    def targets(self):
        return (self.name,)

    def probe(self, target):
        return Probe(is_usable=True, resolved=target.text)

    def machine(self, target):
        return Machine(vector_registers=0)

    def compile(self, module, target):
        require_compilable(self, module, target)
        checked = tuple(dict.fromkeys(n.buffer for n in walk(module) if isinstance(n, Guard)))
        return Artifact(
            self.name, self.version, target.text, signature_of(module), dumps(module), checked
        )

    def texts(self, module, target):
        return {"wire": dumps(module).decode()}

    def load(self, artifact):
        entry = prototype(artifact.signature)(interpreter(artifact))
        address = ctypes.cast(entry, ctypes.c_void_p).value
        return NativeKernel(artifact, address, keep_alive=(entry,))


def interpreter(artifact):
    module = loads(artifact.code)
    signature = artifact.signature

    def entry(*values):
        arguments = dict(zip(signature.order, values[:-1], strict=True))
        scalars = {param.name: arguments[param.name] for param in signature.scalars}
        arrays = {}
        for param in signature.buffers:
            shape = [evaluate_size(size, scalars, arrays=arrays) for size in param.shape]
            arrays[param.buffer] = view(arguments[param.name], shape, np.dtype(param.dtype))
            arguments[param.name] = arrays[param.buffer]
        try:
            run(module, arguments)
        except GuardFailed as error:
            values[-1].contents.failed_buffer = artifact.bounds_checked_buffers.index(error.buffer)
            return OUT_OF_BOUNDS
        return OK

    return entry


def view(address, shape, dtype):
    size = int(np.prod(shape)) * dtype.itemsize
    if not size:
        return np.empty(shape, dtype)
    memory = (ctypes.c_char * size).from_address(address)
    return np.frombuffer(memory, dtype).reshape(shape)


def no_schedule(module, machine, stats):
    return Schedule()


def unchanged(module):
    return module


@hookimpl
def gossamer_backends():
    return [TinyInterpreter()]


@hookimpl
def gossamer_intrinsics():
    return [Intrinsic("nothing", "{}", "")]


@hookimpl
def gossamer_passes():
    return [Pass("unchanged", "flat", unchanged)]


@hookimpl
def gossamer_schedules():
    return [no_schedule]
