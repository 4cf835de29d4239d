"""Hand-written programs of every stage: the scripts of the testkit, called with random arrays."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from functools import cache, cached_property
from random import Random

import numpy as np

from gossamer_ir.arith.simplify import simplify
from gossamer_ir.core.build import index
from gossamer_ir.core.dtypes import SCALARS
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interpret import InterpreterError, run
from gossamer_ir.nodes import (
    Axis,
    Binary,
    BitmaskVaried,
    Buffer,
    Call,
    CompressedFixed,
    CompressedVaried,
    DenseFixed,
    DenseVaried,
    Distinct,
    Expr,
    InRange,
    Module,
    SparseBuffer,
    Var,
)
from gossamer_ir.script import parse_module
from gossamer_ir.traversal.substitute import substitute
from gossamer_ir.traversal.walk import walk
from gossamer_testkit import script, script_names
from tests.fuzzing.oracle.coordinate_tables import Forest, Storage, Undecided
from tests.fuzzing.oracle.evaluation import Meaning
from tests.fuzzing.programs.program import Program

LENGTHS = (0, 1, 2, 3, 3, 4, 5)
TRIES = 12
TOLERANCE = 1e-3
"""The tolerance for results of functions and quotients."""


@dataclass(frozen=True)
class Written(Program):
    """A program that means what the interpreter makes of it as it is written."""

    @cached_property
    def meaning(self) -> Meaning:
        """Raise `InterpreterError` where the program stops."""
        arrays = {name: array.copy() for name, array in self.arrays.items()}
        run(self.module, {**arrays, **self.sizes})
        kept = {buffer.handle for buffer in self.module.functions[0].buffers}
        return Meaning({name: arrays[name] for name in arrays if name in kept}, Counter())


@cache
def parsed(name: str) -> Module:
    return parse_module(script(name))


@cache
def usable() -> tuple[str, ...]:
    """The scripts that arrays can be drawn for; one of two spellings."""
    names = [name for name in script_names() if not name.endswith("_paper")]
    seeds = [Random(seed) for seed in range(TRIES)]
    return tuple(name for name in names if any(drawn_once(name, rng) for rng in seeds))


def draw_written(rng: Random) -> tuple[str, Program]:
    """A script by its name, with arrays."""
    while True:
        name = rng.choice(usable())
        program = drawn_once(name, rng)
        if program is not None:
            return name, program


def drawn_once(name: str, rng: Random) -> Program | None:
    """A script with random arrays; None where it does not run to its end with these."""
    return with_arrays(parsed(name), rng)


def with_arrays(
    module: Module, rng: Random, *, lengths: tuple[int, ...] = LENGTHS
) -> Program | None:
    """A module with random arrays, whose axes have some of these lengths; None where it does not run to its
    end with them."""
    try:
        program = _Data(module, rng, lengths).program
        return program if program.meaning else None
    except (ArgumentError, InterpreterError, Undecided):
        return None


class _Data:
    """Sizes and arrays for what a module declares."""

    def __init__(self, module: Module, rng: Random, lengths: tuple[int, ...]) -> None:
        self._module, self._rng, self._lengths = module, rng, lengths
        (self._function,) = module.functions
        self._arrays: dict[str, np.ndarray] = {}
        self._sizes: dict[str, int | float] = {}
        self._forest = _Forest((), arrays=self._arrays, scalars=self._sizes)
        self._rows: dict[str, list[list[int]]] = {}
        for axis in self._function.axes:
            self._axis(axis)
        for param in self._function.params:
            if param.dtype != "handle":
                self._sizes.setdefault(param.name, rng.choice(lengths[1:]))
        for buffer in self._function.buffers:
            if buffer.handle is not None and buffer.handle not in self._arrays:
                self._arrays[buffer.handle] = self._values(buffer)

    @property
    def program(self) -> Program:
        inexact = any(
            isinstance(node, Call) or (isinstance(node, Binary) and node.op == "div")
            for node in walk(self._function)
        )
        tolerances = dict.fromkeys(self._arrays, TOLERANCE if inexact else 0.0)
        return Written(self._module, self._arrays, self._sizes, tolerances)

    def _number(self, size: Expr, value: int) -> int:
        """The value of a size, which is given here where nothing has given it before."""
        for node in walk(size):
            if isinstance(node, Var):
                self._sizes.setdefault(node.name, value)
        return self._forest.number(size)

    def _axis(self, axis: Axis) -> None:
        length = self._number(axis.length, self._rng.choice(self._lengths))
        if length < 0:
            raise Undecided(f"an axis '{axis.name}' of length {length}")
        if not isinstance(axis, DenseFixed):
            self._index_arrays(axis, length)
        self._forest.add(axis)

    def _index_arrays(
        self,
        axis: DenseVaried | CompressedVaried | CompressedFixed | BitmaskVaried,
        length: int,
    ) -> None:
        count = 1 if axis.parent is None else self._forest[axis.parent].size
        rows = [self._row(length) for _ in range(count)]
        if isinstance(axis, CompressedFixed):
            width = self._number(axis.width, self._rng.choice((0, 1, 2, 3)))
            if axis.padded:
                rows = [(row + [length] * width)[:width] for row in rows]
            elif width > length:
                raise Undecided(f"{width} different coordinates of '{axis.name}' below {length}")
            else:
                rows = [sorted(self._rng.sample(range(length), width)) for _ in rows]
        elif axis.indptr not in self._arrays:
            offsets = np.cumsum([0, *map(len, rows)])
            self._arrays[axis.indptr] = offsets.astype(axis.indptr_dtype)
        else:
            counts = np.diff(self._arrays[axis.indptr])
            rows = [sorted(self._rng.choices(range(length), k=n)) for n in counts]
        total = sum(map(len, rows))
        if getattr(axis, "nnz", None) is not None and self._number(axis.nnz, total) != total:
            raise Undecided(f"as many elements of '{axis.name}' as of another axis")
        if isinstance(axis, BitmaskVaried):
            words = np.array([sum(1 << at for at in {*row}) for row in rows], axis.words_dtype)
            self._arrays.setdefault(axis.words, words)
        elif not isinstance(axis, DenseVaried):
            indices = np.array([at for row in rows for at in row], axis.indices_dtype)
            self._arrays.setdefault(axis.indices, indices)

    def _row(self, length: int) -> list[int]:
        rng = self._rng
        return sorted(rng.sample(range(length), rng.choice((0, length, rng.randint(0, length)))))

    def _values(self, buffer: Buffer | SparseBuffer) -> np.ndarray:
        if isinstance(buffer, SparseBuffer):
            size = Storage(buffer, self._forest).size
        elif "indptr" in buffer.name:
            return self._offsets(buffer)
        else:
            size = math.prod(map(self._forest.number, buffer.shape))
        low, high = self._range(buffer)
        if size and low >= high:
            raise Undecided(f"elements of '{buffer.name}' from {low} to before {high}")
        if Distinct(buffer.name) in self._function.facts:
            # All negative numbers and those after the range may be among them: rows that do not exist.
            values = self._rng.sample(range(min(low, high - size), high), size)
        else:
            values = [self._rng.randrange(low, high) for _ in range(size)]
        return np.array(values, SCALARS[buffer.dtype].stored_as)

    def _offsets(self, buffer: Buffer) -> np.ndarray:
        """Where the fibers begin that the coordinates of a program without axes are in."""
        (indices,) = (
            other
            for other in self._function.buffers
            if other.name == buffer.name.replace("indptr", "indices")
        )
        end, count = (self._forest.number(array.shape[0]) for array in (indices, buffer))
        inside = (self._rng.randint(0, end) for _ in range(count - 2))
        return np.array(sorted([0, *inside, end][:count]), buffer.dtype)

    def _range(self, buffer: Buffer | SparseBuffer) -> tuple[int, int]:
        """Return the range of values: coordinates of a program without axes are of the shortest."""
        for fact in self._function.facts:
            if isinstance(fact, InRange) and fact.buffer == buffer.name:
                return self._forest.number(fact.low), self._forest.number(fact.high)
        if "indices" in buffer.name:
            return 0, int(min(self._sizes.values()))
        return (0, 4) if buffer.dtype.startswith("u") else (-3, 4)


class _Forest(Forest):
    """Also knows sizes that are computed."""

    def number(self, size: Expr) -> int:
        sizes = {name: index(int(value)) for name, value in self._scalars.items()}
        return super().number(simplify(substitute(size, sizes)))
