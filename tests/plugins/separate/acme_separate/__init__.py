"""A plugin for a "device" with a memory of its own, which runs kernels by the reference interpreter.

No address of the device is one of this process, so that code that read an array of it would crash. Calls are
put on streams, and run when a stream is synchronized.
"""

from acme_separate.backend import SeparateMemory
from gossamer_backend.plugin_api import hookimpl
from gossamer_ir.interchange.records import Schedule


@hookimpl
def gossamer_backends():
    return [SeparateMemory()]


def as_written(module, machine, stats):
    return Schedule()


@hookimpl
def gossamer_schedules():
    return [as_written]
