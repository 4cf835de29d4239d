"""Loads and stores: predicated, gathered, scattered, strided, of bools, and of allocated buffers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tools.corpus_programs.program_source import CorpusProgram, flat, function

LANES = (
    ("float32", 4),
    ("float32", 8),
    ("float32", 16),
    ("float32", 64),
    ("float64", 8),
    ("int32", 16),
)
PLAIN = ("float32", "float64", "int32")


def sources() -> Iterator[CorpusProgram]:
    """Yield the sources of these programs."""
    for dtype, lanes in LANES:
        yield from _with_lanes(dtype, lanes)
    for dtype in PLAIN:
        yield from _scalar(dtype)
        yield from _allocating(dtype)
    yield _bools()


def _with_lanes(dtype: str, lanes: int) -> Iterator[CorpusProgram]:
    """Yield vector programs whose last lanes are masked, so that they work for any size."""
    run = f"T.ramp(i * {lanes}, 1, {lanes})"
    mask = f"{run} < T.broadcast(n, {lanes})"
    zero = f"T.broadcast({_literal('0', dtype)}, {lanes})"
    x = f"T.load(X, {run}, predicate={mask}, passthrough={zero})"
    p = f"T.load(P, {run}, predicate={mask}, passthrough=T.broadcast(T.int64(0), {lanes}))"
    at_p = f"T.load(X, {p}, predicate={mask}, passthrough={zero})"
    last = f"T.ramp(n - 1 - i * {lanes}, -1, {lanes})"
    steps = f"(n + {lanes - 1}) // {lanes}"
    bodies = {
        "masked": ("copied", "A run is loaded and stored under a mask.",
                   f"T.store(Y, {run}, value={x}, predicate={mask})", ""),
        "gather": ("gathered", "Y[i] = X[P[i]], gathered under a mask.",
                   f"T.store(Y, {run}, value={at_p}, predicate={mask})", "P = p (n,) int64"),
        "scatter": ("scattered", "Y[P[i]] = X[i], scattered under a mask.",
                    f"T.store(Y, {p}, value={x}, predicate={mask})", "P = p (n,) int64"),
        "backwards": ("reversed_order", "A ramp of stride -1 is loaded under a mask.",
                      f"T.store(Y, {run}, value=T.load(X, {last}, predicate={mask}, passthrough={zero})"
                      f", predicate={mask})", ""),
    }  # fmt: skip
    for name, (oracle, says, store, more) in bodies.items():
        body = f"for i in T.serial({steps}):\n    {store}"
        yield _over(f"{name}_{dtype}x{lanes}", says, oracle, dtype, body=body, more=more)
    yield from _strided_accesses(dtype, lanes)


def _strided_accesses(dtype: str, lanes: int) -> Iterator[CorpusProgram]:
    run, mask = (
        f"T.ramp(i * {lanes}, 1, {lanes})",
        f"T.ramp(i * {lanes}, 1, {lanes}) < T.broadcast(n, {lanes})",
    )
    third = f"T.ramp(i * {3 * lanes}, 3, {lanes})"
    zero = f"T.broadcast({_literal('0', dtype)}, {lanes})"
    loop = f"for i in T.serial((n + {lanes - 1}) // {lanes}):\n    "
    load = (
        f"T.store(Y, {run}, value=T.load(X, {third}, predicate={mask}, passthrough={zero})"
        f", predicate={mask})"
    )
    store = (
        f"T.store(Y, {third}, value=T.load(X, {run}, predicate={mask}, passthrough={zero})"
        f", predicate={mask})"
    )
    yield _over(
        f"strided_load_{dtype}x{lanes}", "Every third element is loaded.", "every_third", dtype,
        body=loop + load, shapes={"x": [3, 0]},
    )  # fmt: skip
    yield _over(
        f"strided_store_{dtype}x{lanes}", "Every third element is stored.", "every_third_stored", dtype,
        body=loop + store, shapes={"y": [3, 0]},
    )  # fmt: skip


def _scalar(dtype: str) -> Iterator[CorpusProgram]:
    loop = "for i in T.serial(n):\n    "
    flags = "FLAGS = flags (n,) bool\nP = p (n,) int64"
    far = {"p": "far"}
    minus = _literal("-1", dtype)
    yield _over(
        f"copy_{dtype}", "Y = X.", "copied", dtype, body=loop + "Y[i] = X[i]",
    )  # fmt: skip
    yield _over(
        f"predicated_load_{dtype}", "X[P[i]] is read where a flag is on; elsewhere P is far outside.",
        "flagged_or_minus_one", dtype, more=flags, recipes=far,
        body=loop + f"Y[i] = T.load(X, P[i], predicate=FLAGS[i], passthrough={minus})",
    )  # fmt: skip
    yield _over(
        f"predicated_store_{dtype}", "Y[P[i]] is written where a flag is on; elsewhere P is far outside.",
        "stored_where_flagged", dtype, more=flags, recipes=far,
        body=loop + "T.store(Y, P[i], value=X[i], predicate=FLAGS[i])",
    )  # fmt: skip
    yield _over(
        f"lazy_choice_{dtype}", "Only the chosen side of if_then_else is read.",
        "flagged_or_minus_one", dtype, more=flags, recipes=far,
        body=loop + f"Y[i] = T.if_then_else(FLAGS[i], X[P[i]], {minus})",
    )  # fmt: skip
    yield _over(
        f"branch_{dtype}", "Stores in one branch of an if.", "where_flagged", dtype,
        more="FLAGS = flags (n,) bool", body=loop + "if FLAGS[i]:\n        Y[i] = X[i]",
    )  # fmt: skip


def _allocating(dtype: str) -> Iterator[CorpusProgram]:
    yield _over(
        f"allocate_constant_{dtype}",
        "A buffer of constant size in each iteration.",
        "doubled",
        dtype,
        body=f'''
for i in T.serial(n):
    S = T.alloc_buffer((2, 3), "{dtype}")
    S[1, 2] = X[i]
    S[0, 0] = X[i]
    Y[i] = S[1, 2] + S[0, 0]
''',
    )
    yield _over(
        f"allocate_local_{dtype}",
        "A local buffer in each iteration.",
        "doubled",
        dtype,
        body=f'''
for i in T.serial(n):
    S = T.alloc_buffer((1,), "{dtype}", scope="local")
    S[0] = X[i]
    S[0] = S[0] + X[i]
    Y[i] = S[0]
''',
    )
    yield _over(
        f"allocate_dynamic_{dtype}",
        "A buffer whose size is known at run time.",
        "reversed_order",
        dtype,
        body=f'''
S = T.alloc_buffer((n,), "{dtype}")
for i in T.serial(n):
    S[i] = X[i]
for j in T.serial(n):
    Y[j] = S[n - 1 - j]
''',
    )


def _bools() -> CorpusProgram:
    text = function(
        "bools",
        "flags: handle, y: handle, n: int64",
        buffers="FLAGS = flags (n,) bool\nY = y (n,) bool",
        body="for i in T.serial(n):\n    Y[i] = not FLAGS[i]",
    )
    arrays = {"flags": ["flags", "bool"], "y": ["zeros", "bool"]}
    return CorpusProgram("bools", "Bools are loaded and stored.", flat(text), "vectors", "negated_flags",
                  {"arrays": arrays})  # fmt: skip


def _over(
    name: str, says: str, oracle: str, dtype: str, *,
    body: str, more: str = "", recipes: dict[str, str] | None = None,
    shapes: dict[str, list[int]] | None = None,
) -> CorpusProgram:  # fmt: skip
    """Return a program over X and Y of n elements and the buffers `more`."""
    sizes = {
        key: "n" if key not in (shapes or {}) else f"n * {(shapes or {})[key][0]}" for key in "xy"
    }
    buffers = f"X = x ({sizes['x']},) {dtype}\nY = y ({sizes['y']},) {dtype}\n{more}"
    extra = [line.split(" = ")[1].split()[0] for line in more.splitlines()]
    kinds = {"p": "int64", "flags": "bool"}
    all_recipes = {
        "x": "counting",
        "y": "untouched",
        "p": "permutation",
        "flags": "flags",
        **(recipes or {}),
    }
    arrays: dict[str, list[Any]] = {
        key: [
            all_recipes[key],
            kinds.get(key, dtype),
            *([shapes[key]] if shapes and key in shapes else []),
        ]
        for key in ("x", "y", *extra)
    }
    params = ", ".join([*(f"{key}: handle" for key in ("x", "y", *extra)), "n: int64"])
    text = function("program", params, buffers=buffers, body=body)
    return CorpusProgram(name, says, flat(text), "vectors", oracle, {"arrays": arrays})


def _literal(text: str, dtype: str) -> str:
    return f"T.{dtype}({text})"
