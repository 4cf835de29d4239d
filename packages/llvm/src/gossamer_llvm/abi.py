"""What generated code and its callers agree on: symbol, status values, workspace, target."""

from __future__ import annotations

from dataclasses import dataclass, field

ENTRY_SYMBOL = "gossamer_kernel"
"""The one exported symbol."""

OK = 0
OUT_OF_BOUNDS = 1
OUT_OF_MEMORY = 2

WORKSPACE = "{ i64, ptr, i64 }"
"""`struct gossamer_workspace`: threads, the function that runs a parallel region, failed buffer."""

THREADS_FIELD, PARALLEL_FIELD, FAILED_BUFFER_FIELD = 0, 1, 2

LANES = (2, 4, 8, 16, 32, 64)
"""The lane counts that reach LLVM; it aborts the process on some others."""


@dataclass(frozen=True)
class Abi:
    """What the emitter has to know of a target.

    `functions` are the calls that become instructions there, never library calls; `scalable` says
    whether vectors with a multiple of vscale lanes exist, `half_conversions` whether instructions
    convert float16 to float32 and back; `attributes` are attached to each function.

    >>> Abi("aarch64-unknown-linux-gnu", scalable=True).functions >= {"sqrt"}
    True
    """

    triple: str
    data_layout: str = ""
    functions: frozenset[str] = field(default=frozenset({"sqrt", "abs"}))
    scalable: bool = False
    half_conversions: bool = False
    attributes: tuple[str, ...] = ()
