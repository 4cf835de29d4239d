"""Interprets the entry of a split module: sizes, memory and launches of a call."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import TypeAlias

import msgspec
import numpy as np

from gossamer_backend.plugin_api import NOT_GUARDED, evaluate_size
from gossamer_cuda_mma_sp.device.gpu_device import GpuDevice
from gossamer_cuda_mma_sp.device.launch_limits import require_launchable
from gossamer_cuda_mma_sp.device_code import DeviceCode, GridShape
from gossamer_cuda_mma_sp.driver.cuda_driver import KernelFunction, LaunchArgument
from gossamer_cuda_mma_sp.driver.device_limits import DeviceLimits
from gossamer_ir.core.build import is_handle
from gossamer_ir.core.dtypes import DType
from gossamer_ir.core.expression_kinds import dtype_of
from gossamer_ir.errors import InternalError
from gossamer_ir.interchange.kernel_abi import workspace_field
from gossamer_ir.nodes import (
    Allocate,
    Binary,
    Compare,
    Const,
    Expr,
    For,
    If,
    Launch,
    Let,
    Stmt,
    Unary,
    Var,
)
from gossamer_support.arrays import Array
from gossamer_support.items_by_name import items_by_name

_FAILED = workspace_field("failed_buffer")

ScalarValue: TypeAlias = int | float | bool

_COMPARISONS = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}


class Clearing(msgspec.Struct, frozen=True):
    """Sets bytes at an address to zero."""

    address: int
    size: int


class GridLaunch(msgspec.Struct, frozen=True):
    """Runs a kernel on a grid."""

    function: KernelFunction
    grid: GridShape
    block: GridShape
    arguments: tuple[LaunchArgument, ...]


DeviceStep: TypeAlias = Clearing | GridLaunch

Allocator: TypeAlias = Callable[[str, int], int]
"""Returns the address of memory for the buffer of a name, and a number of bytes."""


class HostProgram:
    """The entry of a module whose kernels a GPU has loaded, with one workspace for all its calls."""

    def __init__(self, code: DeviceCode, device: GpuDevice) -> None:
        self._entry = items_by_name(code.module.functions)[code.module.entry]
        self._device = device
        with device.calling(f"Loading the kernel '{code.module.entry}'"):
            device.reclaim()
            loaded = device.driver.load_module(code.ptx) if code.symbols else None
            self._kernels = {
                name: device.driver.get_function(
                    loaded, symbol, dynamic_bytes=code.dynamic_bytes.get(symbol, 0)
                )
                for name, symbol in code.symbols.items()
            }
            self.workspace = device.workspace()
        weakref.finalize(self, device.retire, loaded, self.workspace).atexit = False

    def steps(
        self,
        scalars: Mapping[str, ScalarValue],
        addresses: Mapping[str, int],
        *,
        arrays: Mapping[str, Array],
        allocate: Allocator,
    ) -> tuple[DeviceStep, ...]:
        """Return what a device does for a call, with the addresses of arrays by the names of their
        parameters. A size may be an element of one of the `arrays`, by the names of buffers.

        `ArgumentError` (`cuda.launch`) for a grid that the device does not launch.
        """
        call = _Call(
            self,
            limits=self._device.limits,
            scalars=dict(scalars),
            addresses=dict(addresses),
            arrays=arrays,
            allocate=allocate,
        )
        call.body(self._entry.body)
        return tuple(call.steps)

    def kernel(self, name: str) -> KernelFunction:
        """Return the kernel of a function."""
        return self._kernels[name]

    def prepare(self, steps: Sequence[DeviceStep], *, stream: int) -> None:
        """Load what the steps need on a stream."""
        for step in steps:
            if isinstance(step, GridLaunch):
                self._device.driver.prepare(step.function, stream=stream)

    def run(self, steps: Sequence[DeviceStep], *, stream: int) -> None:
        """Put steps on a stream. Nothing is allocated, and nothing waited for."""
        driver = self._device.driver
        with self._device.calling(f"The kernel '{self._entry.name}'"):
            for step in steps:
                if isinstance(step, Clearing):
                    driver.clear(step.address, step.size, stream=stream)
                else:
                    driver.launch(
                        step.function,
                        grid=step.grid,
                        block=step.block,
                        arguments=step.arguments,
                        stream=stream,
                    )

    def failed_buffer(self) -> int:
        """Return the number of the buffer whose bounds check failed in a call that is done, once."""
        values = self.workspace.read()
        failed = int(values[_FAILED])
        if failed != NOT_GUARDED:
            self.workspace.write(np.full_like(values, NOT_GUARDED))
        return failed


class _Call:
    def __init__(
        self,
        program: HostProgram,
        *,
        limits: DeviceLimits,
        scalars: dict[str, ScalarValue],
        addresses: dict[str, int],
        arrays: Mapping[str, Array],
        allocate: Allocator,
    ) -> None:
        self.steps: list[DeviceStep] = []
        self._program, self._limits, self._allocator = program, limits, allocate
        self._scalars, self._addresses, self._arrays = scalars, addresses, arrays

    def body(self, body: tuple[Stmt, ...]) -> None:
        for stmt in body:
            self._stmt(stmt)

    # Other statements: refused on the host of a grid, or run in a kernel.
    def _stmt(self, stmt: Stmt) -> None:
        match stmt:
            case Let():
                self._scalars[stmt.var.name] = self._value(stmt.value)
            case Allocate():
                self._allocate(stmt)
            case Launch():
                self._launch(stmt)
            case If():
                self.body(stmt.then_body if self._value(stmt.condition) else stmt.else_body)
            case For():
                start = int(self._value(stmt.start))
                for number in range(start, start + int(self._value(stmt.extent))):
                    self._scalars[stmt.var] = number
                    self.body(stmt.body)
            case _:
                raise InternalError(f"The host of a grid does not run {type(stmt).__name__}.")

    def _allocate(self, stmt: Allocate) -> None:
        sizes = [max(0, int(self._value(extent))) for extent in stmt.buffer.shape]
        count = prod(sizes) * max(1, DType.parse(stmt.buffer.dtype).bits // 8)
        address = self._allocator(stmt.buffer.name, count)
        self.steps.append(Clearing(address, count))
        self._addresses[stmt.buffer.name] = address

    def _launch(self, stmt: Launch) -> None:
        extents: dict[str, int] = {
            thread.tag: int(self._value(thread.extent)) for thread in stmt.threads
        }
        if min(extents.values(), default=1) <= 0:
            return
        grid, block = _shape(extents, "blockIdx"), _shape(extents, "threadIdx")
        kernel = self._program.kernel(stmt.function)
        require_launchable(stmt.function, kernel, grid=grid, block=block, limits=self._limits)
        arguments = [self._argument(arg) for arg in stmt.args]
        workspace = np.uint64(self._program.workspace.address)
        self.steps.append(GridLaunch(kernel, grid, block, (*arguments, workspace)))

    def _argument(self, arg: Expr) -> LaunchArgument:
        if is_handle(arg):
            return np.uint64(self._addresses[arg.name])
        value = self._value(arg)
        match dtype_of(arg):
            case "float32":
                return np.float32(value)
            case "float64":
                return np.float64(value)
        return np.int64(value)

    # Other expressions and operations: taken or refused by `evaluate_size`.
    def _value(self, expr: Expr) -> ScalarValue:
        match expr:
            case Var():
                return self._scalars[expr.name]
            case Const(dtype="bool"):
                return expr.text == "True"
            case Const() if DType.parse(expr.dtype).is_float:
                return float(expr.text)
            case Compare():
                return bool(_COMPARISONS[expr.op](self._value(expr.lhs), self._value(expr.rhs)))
            case Binary(op="and"):
                return bool(self._value(expr.lhs)) and bool(self._value(expr.rhs))
            case Binary(op="or"):
                return bool(self._value(expr.lhs)) or bool(self._value(expr.rhs))
            case Unary(op="not"):
                return not self._value(expr.operand)
        return evaluate_size(expr, self._scalars, arrays=self._arrays)


def _shape(extents: Mapping[str, int], kind: str) -> GridShape:
    x, y, z = (extents.get(f"{kind}.{axis}", 1) for axis in "xyz")
    return x, y, z
