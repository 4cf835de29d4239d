"""Interprets the entry of a split module: sizes, memory and launches of a call."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import TypeAlias

import numpy as np

from gossamer_backend.plugin_api import evaluate_size
from gossamer_cuda_mma_sp.device_code import DeviceCode, GridShape
from gossamer_cuda_mma_sp.driver.cuda_driver import CudaDriver
from gossamer_ir.core.dtypes import DType
from gossamer_ir.errors import ArgumentError
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
from gossamer_ir.support.arrays import Array
from gossamer_ir.support.items_by_name import items_by_name

MOST_BLOCKS = {"x": (1 << 31) - 1, "y": 65535, "z": 65535}
"""The largest number of blocks along each axis."""

ScalarValue: TypeAlias = int | float | bool

_COMPARISONS = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}


class HostProgram:
    """The entry of a module whose kernels a driver has loaded."""

    def __init__(self, code: DeviceCode, driver: CudaDriver) -> None:
        self._driver = driver
        self._entry = items_by_name(code.module.functions)[code.module.entry]
        loaded = driver.load_module(code.ptx) if code.symbols else None
        self._kernels = {
            name: driver.get_function(loaded, symbol) for name, symbol in code.symbols.items()
        }

    def run(
        self,
        scalars: Mapping[str, ScalarValue],
        addresses: Mapping[str, int],
        workspace: int,
        *,
        arrays: Mapping[str, Array],
    ) -> None:
        """Launch the kernels of a call, with the addresses of arrays by the names of their parameters. A size
        may be an element of one of the `arrays`, by the names of buffers."""
        call = _Call(self._driver, self._kernels, dict(scalars), dict(addresses), workspace, arrays)
        try:
            call.body(self._entry.body)
            self._driver.synchronize()
        finally:
            for address in call.allocated:
                self._driver.free(address)


class _Call:
    def __init__(
        self,
        driver: CudaDriver,
        kernels: Mapping[str, object],
        scalars: dict[str, ScalarValue],
        addresses: dict[str, int],
        workspace: int,
        arrays: Mapping[str, Array],
    ) -> None:
        self._arrays = arrays
        self.allocated: list[int] = []
        self._driver, self._kernels = driver, kernels
        self._scalars, self._addresses, self._workspace = scalars, addresses, workspace

    def body(self, body: tuple[Stmt, ...]) -> None:
        for stmt in body:
            self._stmt(stmt)

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
                raise AssertionError(type(stmt))

    def _allocate(self, stmt: Allocate) -> None:
        sizes = [max(0, int(self._value(extent))) for extent in stmt.buffer.shape]
        count = prod(sizes) * max(1, DType.parse(stmt.buffer.dtype).bits // 8)
        address = self._driver.allocate(count)
        self.allocated.append(address)
        self._driver.copy_to_device(address, np.zeros(count, np.uint8))
        self._addresses[stmt.buffer.name] = address

    def _launch(self, stmt: Launch) -> None:
        extents: dict[str, int] = {
            thread.tag: int(self._value(thread.extent)) for thread in stmt.threads
        }
        if min(extents.values(), default=1) <= 0:
            return
        grid, block = _shape(extents, "blockIdx"), _shape(extents, "threadIdx")
        for axis, count in zip("xyz", grid, strict=True):
            if count > MOST_BLOCKS[axis]:
                raise ArgumentError(
                    "cuda.launch",
                    f"The kernel '{stmt.function}' needs {count} blocks along {axis}, and a grid has at most "
                    f"{MOST_BLOCKS[axis]}.",
                    hint="Bind this loop to blockIdx.x, or split it.",
                )
        arguments = [self._argument(arg) for arg in stmt.args]
        self._driver.launch(
            self._kernels[stmt.function],
            grid=grid,
            block=block,
            arguments=[*arguments, self._workspace],
        )

    def _argument(self, arg: Expr) -> int | float:
        if isinstance(arg, Var) and arg.dtype == "handle":
            return self._addresses[arg.name]
        return self._value(arg)

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
