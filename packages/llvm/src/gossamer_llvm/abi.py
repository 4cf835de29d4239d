"""The contract between generated code and its callers: symbol, status values, workspace, target."""

from __future__ import annotations

import msgspec

ENTRY_SYMBOL = "gossamer_kernel"
"""The one exported symbol."""

OK = 0
OUT_OF_BOUNDS = 1
OUT_OF_MEMORY = 2
INTERRUPTED = 3

WORKSPACE = "{ i64, ptr, i64, ptr }"
"""`struct gossamer_workspace`: number of threads, function that runs a parallel region, failed buffer,
function that tells whether to stop."""

SHORT, LONG = -1, -2
"""Answers of the function that tells whether to stop, which is 1 to stop and 0 to go on: the portion before
took little or much time."""

THREADS_FIELD, PARALLEL_FIELD, FAILED_BUFFER_FIELD, ASK_FIELD = 0, 1, 2, 3

LANE_COUNTS = (2, 4, 8, 16, 32, 64)
"""The lane counts that are passed to LLVM; it aborts the process for some others."""


INSERTED_LANES = 8
"""The lanes up to which scalar loads are faster than a gather on most CPUs, and scalar stores than a scatter
(measured on SpMV: 1.4 times faster with 8)."""


class Abi(msgspec.Struct, frozen=True):
    """The properties of a target that the emitter needs.

    `functions` are the math functions that are instructions there; calls of a library are never emitted.
    `scalable`: the target has vectors with a multiple of vscale lanes. `half_conversions`: it has
    instructions that convert float16 to float32 and back. A gather of at most `inserted_lanes` lanes becomes
    scalar loads. `permuted_bytes`: the size of a vector register whose elements of 32 and 64 bits an
    instruction of AVX-512 permutes by indices in another one; 0 if there is none. `attributes` are attached
    to each function.

    >>> Abi("aarch64-unknown-linux-gnu", scalable=True).functions >= {"sqrt"}
    True
    """

    triple: str
    data_layout: str = ""
    functions: frozenset[str] = frozenset({"sqrt", "abs", "popcount", "ctz"})
    scalable: bool = False
    half_conversions: bool = False
    inserted_lanes: int = INSERTED_LANES
    permuted_bytes: int = 0
    attributes: tuple[str, ...] = ()
