"""What a call costs besides its machine code: kernels of a matrix with one element, on one thread.

The machine code of such a kernel takes some nanoseconds, so that all of these times are overhead. The
same function called by `ctypes` with everything converted beforehand is what Python asks for any
call of a C function with as many arguments, and a C function that does nothing, without arguments,
what it asks for any call at all.

    python -m benchmarks.call_overhead
"""

from __future__ import annotations

import ctypes
import statistics
import timeit
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy import sparse

import gossamer as gs
from gossamer_backend.native import NOT_GUARDED, Workspace
from gossamer_formats import from_scipy

Call: TypeAlias = Callable[[], object]

ROUNDS = 21
CALLS = 20_000
LIMIT_US = 3.0
"""What a bound call may cost."""


@dataclass(frozen=True)
class Cost:
    """The median time of a call in microseconds, and how often that of the bound call it is."""

    what: str
    microseconds: float
    ratio: float


def main() -> None:
    """Prints a table for each operator; fails where a bound call costs too much."""
    console = Console()
    for op in ("spmv", "spmm"):
        costs = measure(calls_of(op))
        console.print(table_of(op, costs))
        if costs[0].microseconds >= LIMIT_US:
            raise SystemExit(
                f"A bound {op} takes {costs[0].microseconds:.2f} us, not {LIMIT_US} us."
            )


def calls_of(op: str) -> dict[str, Call]:
    """The ways to make the same call, the bound one first."""
    gs.set_num_threads(1)
    matrix = sparse.csr_array(np.array([[2.0]], dtype=np.float32))
    tensor = from_scipy(matrix)
    shape = (1,) if op == "spmv" else (1, 1)
    given, out = np.full(shape, 3.0, np.float32), np.zeros(shape, np.float32)
    operator: Callable[..., Any] = getattr(gs, op)
    bound = gs.bind(op, tensor, given, out=out)
    workspace = Workspace(1, None, NOT_GUARDED)
    bare = partial(bound.kernel.function, *bound.prepared_arguments, ctypes.byref(workspace))
    calls: dict[str, Call] = {
        "bound()": bound,
        "the same function by ctypes": bare,
        "a C function that does nothing": ctypes.CDLL(None).getppid,
        f"gossamer.{op}(tensor, ..., out=...)": partial(operator, tensor, given, out=out),
        f"gossamer.{op}(SciPy matrix, ..., out=...)": partial(operator, matrix, given, out=out),
    }
    for name, call in calls.items():
        out[...] = 0
        call()
        if "nothing" not in name and out.flat[0] != 6.0:
            raise SystemExit(f"{name} computed {out.flat[0]}, not 6.")
    return calls


def measure(calls: dict[str, Call]) -> list[Cost]:
    """Medians over rounds in which each call had its turn."""
    samples: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(ROUNDS):
        for name, call in calls.items():
            count = CALLS if "SciPy" not in name else CALLS // 50
            samples[name].append(timeit.timeit(call, number=count) / count * 1e6)
    medians = {name: statistics.median(times) for name, times in samples.items()}
    bound = next(iter(medians.values()))
    return [Cost(name, time, time / bound) for name, time in medians.items()]


def table_of(op: str, costs: list[Cost]) -> Table:
    """The costs, one a line."""
    table = Table(title=f"{op} of a matrix with one element, one thread")
    table.add_column("call")
    table.add_column("microseconds", justify="right")
    table.add_column("of a bound call", justify="right")
    for cost in costs:
        table.add_row(cost.what, f"{cost.microseconds:.2f}", f"{cost.ratio:.2f}")
    return table


if __name__ == "__main__":
    main()
