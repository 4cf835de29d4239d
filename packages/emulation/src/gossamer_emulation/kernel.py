"""Kernels whose code runs in an emulated process, to which a call sends the arrays."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

import numpy as np

from gossamer_backend.plugin_api import Artifact, CallOutcome, NativeKernel, python_kernel
from gossamer_emulation.driver.program import reason_against_emulation
from gossamer_emulation.emulated_machine import Architecture, EmulatedMachine
from gossamer_emulation.emulator import (
    MAX_STACK_ARGUMENTS,
    EmulatedArgument,
    EmulatedArray,
    EmulatedFloat,
    emulator_of,
)
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import ScalarParam, Signature
from gossamer_support.arrays import Array
from gossamer_support.typed_calls import typed


@typed
def emulated_kernel(artifact: Artifact, machine: EmulatedMachine) -> NativeKernel:
    """Return the kernel of an artifact, whose object code runs on an emulated machine, on one thread. The
    kernels of a machine share a process.

    `ArgumentError` (`emulation.programs`) if the emulator is absent, or the cross compiler before it has made
    the program of the process; `emulation.parameters` if the kernel has too many parameters.

    >>> from gossamer_emulation import RISCV64
    >>> from gossamer_ir.interchange.records import Signature
    >>> artifact = Artifact("toy", "1.0", "toy", Signature("twice", (), (), ()), b"")
    >>> emulated_kernel(artifact, EmulatedMachine(RISCV64._replace(emulator="qemu-of-nothing"), "rv64"))
    Traceback (most recent call last):
    ...
    gossamer_support.errors.ArgumentError: The kernel 'twice' cannot run here: Emulation needs qemu-of-...
    """
    _require_programs(artifact.signature, machine.architecture)
    _require_parameters(artifact.signature, machine.architecture)
    emulator = emulator_of(machine)

    def run(arrays: Mapping[str, Array], scalars: Mapping[str, Any]) -> CallOutcome:
        result = emulator.call(artifact.code, _arguments(artifact.signature, arrays, scalars))
        return CallOutcome(result.status, result.failed_buffer)

    return python_kernel(artifact, run, emulator=machine.architecture.emulator)


def _arguments(
    signature: Signature, arrays: Mapping[str, Array], scalars: Mapping[str, Any]
) -> list[EmulatedArgument]:
    """Return the arguments of a call in the order of the parameters."""
    by_name: dict[str, EmulatedArgument] = {
        param.name: _scalar_argument(param, scalars[param.name]) for param in signature.scalars
    }
    for param in signature.buffers:
        by_name[param.name] = EmulatedArray(
            arrays[param.buffer].view(np.uint8).data, param.is_written
        )
    return [by_name[name] for name in signature.order]


def _scalar_argument(param: ScalarParam, value: Any) -> EmulatedArgument:
    if not _is_float(param):
        return int(value)
    if param.dtype == "float32":
        return EmulatedFloat(struct.unpack("<q", struct.pack("<fi", value, -1))[0])
    return EmulatedFloat(struct.unpack("<q", struct.pack("<d", value))[0])


def _is_float(param: ScalarParam) -> bool:
    return param.dtype in ("float32", "float64")


def _require_programs(signature: Signature, architecture: Architecture) -> None:
    reason = reason_against_emulation(architecture)
    if reason is not None:
        raise ArgumentError(
            "emulation.programs", f"The kernel '{signature.entry}' cannot run here: {reason}"
        )


def _require_parameters(signature: Signature, architecture: Architecture) -> None:
    floats = sum(map(_is_float, signature.scalars))
    # The workspace is one more.
    integers = len(signature.order) - floats + 1
    if architecture.stack_arguments(integers=integers, floats=floats) > MAX_STACK_ARGUMENTS:
        raise ArgumentError(
            "emulation.parameters",
            f"The kernel '{signature.entry}' has {len(signature.order)} parameters, more than the emulator "
            f"passes: {MAX_STACK_ARGUMENTS} on the stack.",
        )
