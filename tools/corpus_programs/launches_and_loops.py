"""Parallel loops and launches."""

from __future__ import annotations

from collections.abc import Iterator

from tools.corpus_programs.program_source import CorpusProgram, flat, function

COMBINED_DTYPES = ("int8", "uint16", "int32", "int64", "float32", "float64")
COMBINED = {
    "add": COMBINED_DTYPES,
    "min": (*COMBINED_DTYPES, "float16"),
    "max": (*COMBINED_DTYPES, "float16"),
}


def sources() -> Iterator[CorpusProgram]:
    """Yield the sources of these programs."""
    for name, start, weight, grain in (
        ("parallel", 0, "", ""),
        ("parallel_grain", 0, "", "grain=64"),
        ("parallel_offset", 10, "", ""),
        ("parallel_weighted", 0, "weight=W[i]", ""),
        ("parallel_weighted_grain", 0, "weight=W[i]", "grain=1000"),
        ("parallel_weighted_offset", 10, "weight=W[i]", ""),
    ):
        yield _counting(name, start, weight, grain)
    yield _allocating()
    yield _guards()
    for op, dtypes in COMBINED.items():
        for dtype in dtypes:
            yield _atomic(op, dtype)
    yield _launches()


def _counting(name: str, start: int, weight: str, grain: str) -> CorpusProgram:
    """Return a program with OUT[i] += i + 1, which is wrong for iterations that run twice or never."""
    weights = f"W = w (n + {start + 1},) int64" if weight else ""
    handles = "out: handle, w: handle" if weight else "out: handle"
    buffers = f"OUT = out (n + {start + 1},) int64\n{weights}"
    arguments = "[out, w, n]" if weight else "[out, n]"
    options = "".join(f", {item}" for item in (weight, grain) if item)
    entry = function(
        "counting",
        f"{handles}, n: int64",
        buffers=buffers,
        body=f'T.parallel_for("counting_i", "i", {start}, {start} + n, args={arguments}{options})',
    )
    inner = function(
        "counting_i",
        f"begin: int64, end: int64, {handles}, n: int64",
        buffers=buffers,
        body="for i in T.serial(begin, end):\n    OUT[i] = OUT[i] + i + 1",
    )
    return CorpusProgram(name, "Each iteration runs once, however the loop is cut.", flat(entry, inner),
                  "weight_cases", "counted", {"start": start, "weighted": bool(weight)})  # fmt: skip


def _allocating() -> CorpusProgram:
    """Return a program in which each chunk has a buffer of its own, and all share a buffer of the caller."""
    entry = function(
        "twice",
        "x: handle, y: handle, n: int64",
        buffers="X = x (n,) float32\nY = y (n,) float32",
        body="""
S = T.alloc_buffer((n,), "float32")
for i in T.serial(n):
    S[i] = X[i]
T.parallel_for("twice_i", "j", n, args=[S, y, n])
""",
    )
    inner = function(
        "twice_i",
        "begin: int64, end: int64, s: handle, y: handle, n: int64",
        buffers="S = s (n,) float32\nY = y (n,) float32",
        body="""
L = T.alloc_buffer((n,), "float32")
for i in T.serial(begin, end):
    L[i] = S[i]
for j in T.serial(begin, end):
    Y[j] = L[j] + S[j]
""",
    )
    arrays = {"x": ["counting", "float32"], "y": ["untouched", "float32"]}
    return CorpusProgram("parallel_allocate", "Buffers of the caller and of each chunk.", flat(entry, inner),
                  "vectors", "doubled", {"arrays": arrays})  # fmt: skip


def _atomic(op: str, dtype: str) -> CorpusProgram:
    buffers = f"X = x (n,) {dtype}\nY = y (7,) {dtype}"
    entry = function(
        "combine",
        "x: handle, y: handle, n: int64",
        buffers=buffers,
        body='T.parallel_for("combine_i", "i", n, args=[x, y, n], grain=16)',
    )
    inner = function(
        "combine_i",
        "begin: int64, end: int64, x: handle, y: handle, n: int64",
        buffers=buffers,
        body=f"for i in T.serial(begin, end):\n    T.atomic_{op}(Y[i * i % 7], X[i])",
    )
    arrays = {"x": ["small", dtype], "y": ["counting", dtype, [0, 7]]}
    options = {"arrays": arrays, "op": op, "sizes": [0, 1, 20, 20000]}
    return CorpusProgram(f"atomic_{op}_{dtype}", "Threads meet in a few elements.", flat(entry, inner),
                  "vectors", "combined", options)  # fmt: skip


def _guards() -> CorpusProgram:
    buffers = "X = x (n,) float32\nP = p (m,) int64\nY = y (m,) float32"
    handles = "x: handle, p: handle, y: handle"
    entry = function(
        "take",
        f"{handles}, n: int64, m: int64",
        buffers=buffers,
        body='T.parallel_for("take_i", "i", m, args=[x, p, y, n, m])',
    )
    inner = function(
        "take_i",
        f"begin: int64, end: int64, {handles}, n: int64, m: int64",
        buffers=buffers,
        body="""
for i in T.serial(begin, end):
    T.guard(P[i] >= 0 and P[i] < n, X)
    Y[i] = X[P[i]]
""",
    )
    return CorpusProgram(
        "parallel_guard",
        "A guard that fails in a chunk stops the call.",
        flat(entry, inner),
        "guard_cases",
        "gathered",
        {"buffer": "X"},
    )


def _launches() -> CorpusProgram:
    """Return the second launch reads what the first wrote."""
    entry = function(
        "steps",
        "x: handle, y: handle, n: int64",
        buffers="X = x (n,) float32\nY = y (n,) float32",
        body='T.launch("times", [x, y, n, T.float32(3)])\nT.launch("plus", [y, n, T.float32(1)])',
    )
    times = function(
        "times",
        "x: handle, y: handle, n: int64, factor: float32",
        buffers="X = x (n,) float32\nY = y (n,) float32",
        body="for i in T.serial(n):\n    Y[i] = X[i] * factor",
    )
    plus = function(
        "plus",
        "y: handle, n: int64, addend: float32",
        buffers="Y = y (n,) float32",
        body="for i in T.serial(n):\n    Y[i] = Y[i] + addend",
    )
    arrays = {"x": ["small", "float32"], "y": ["untouched", "float32"]}
    return CorpusProgram("launches", "Two launches, one after the other.", flat(entry, times, plus),
                  "vectors", "scaled", {"arrays": arrays})  # fmt: skip
