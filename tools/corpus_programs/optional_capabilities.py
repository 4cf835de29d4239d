"""Features that not every backend supports: math functions, half precision, scalable vectors, threads that
wait for each other."""

from __future__ import annotations

from collections.abc import Iterator

from tools.corpus_programs.control import over_vectors
from tools.corpus_programs.every_operation import FLOATS
from tools.corpus_programs.program_source import CorpusProgram

FUNCTIONS = ("exp", "log", "tanh", "erf", "sin", "cos", "round")

LANES = "T.vscale() * 4"
RUN = f"T.ramp(i * lanes, 1, {LANES})"
MASK = f"{RUN} < T.broadcast(n, {LANES})"
ZERO = f"T.broadcast(T.float32(0), {LANES})"
LOAD = f"T.load(X, {RUN}, predicate={MASK}, passthrough={ZERO})"


def sources() -> Iterator[CorpusProgram]:
    """Yield the sources of these programs."""
    for dtype in FLOATS:
        for name in FUNCTIONS:
            yield over_vectors(
                f"{name}_{dtype}",
                f"Y = {name}(X), up to the last few bits.",
                "math_function",
                {"x": ["positive", dtype], "y": ["zeros", dtype]},
                f"for i in T.serial(n):\n    Y[i] = T.{name}(X[i])",
                options={"function": name},
            )
        yield over_vectors(
            f"pow_{dtype}",
            "Y = X ** Z, up to the last few bits.",
            "math_function",
            {"x": ["positive", dtype], "z": ["fractions", dtype], "y": ["zeros", dtype]},
            "for i in T.serial(n):\n    Y[i] = T.pow(X[i], Z[i])",
            options={"function": "pow"},
        )
    yield over_vectors(
        "half_float16",
        "Sums in half precision.",
        "doubled",
        {"x": ["small", "float16"], "y": ["zeros", "float16"]},
        "for i in T.serial(n):\n    Y[i] = X[i] + X[i]",
    )
    yield over_vectors(
        "scalable_copy_float32",
        "Vectors as long as the machine's, the last one masked.",
        "copied",
        {"x": ["counting", "float32"], "y": ["untouched", "float32"]},
        f"lanes: T.int64 = {LANES}\nfor i in T.serial((n + lanes - 1) // lanes):\n    "
        f"T.store(Y, {RUN}, value={LOAD}, predicate={MASK})",
    )
    yield over_vectors(
        "barrier_float32",
        "Each thread stores what another thread of its block has loaded before a barrier.",
        "copied",
        {"x": ["counting", "float32"], "y": ["untouched", "float32"]},
        """
for b in T.thread_binding((n + 31) // 32, thread="blockIdx.x"):
    S = T.alloc_buffer((32,), "float32", scope="shared")
    for t in T.thread_binding(32, thread="threadIdx.x"):
        if b * 32 + t < n:
            S[t] = X[b * 32 + t]
        T.barrier()
        if b * 32 + 31 - t < n:
            Y[b * 32 + 31 - t] = S[31 - t]
""",
    )
    yield over_vectors(
        "async_copy_float32",
        "Threads wait for their copies to shared memory and for each other; they store elements of others.",
        "copied",
        {"x": ["counting", "float32"], "y": ["untouched", "float32"]},
        """
for b in T.thread_binding((n + 31) // 32, thread="blockIdx.x"):
    S = T.alloc_buffer((2, 32), "float32", scope="shared")
    for t in T.thread_binding(32, thread="threadIdx.x"):
        if b * 32 + t < n:
            with T.async_copy():
                S[0, t] = X[b * 32 + t]
        T.commit_group()
        if b * 32 + t < n:
            with T.async_copy():
                S[1, t] = X[b * 32 + t]
        T.commit_group()
        T.wait_group(1)
        T.barrier()
        if b * 32 + 31 - t < n:
            Y[b * 32 + 31 - t] = S[0, 31 - t]
""",
    )
    yield over_vectors(
        "shuffle_float32",
        "Threads get values of others, and give them back.",
        "copied",
        {"x": ["counting", "float32"], "y": ["untouched", "float32"]},
        """
for b in T.thread_binding((n + 39) // 40, thread="blockIdx.x"):
    for t in T.thread_binding(40, thread="threadIdx.x"):
        V = T.alloc_buffer((1,), "float32", scope="local")
        V[0] = 0.0
        if b * 40 + t < n:
            V[0] = X[b * 40 + t]
        v: T.float32 = T.shuffle_xor(V[0], 5, width=8)
        w: T.float32 = T.shuffle_xor(v, 5, width=8)
        z: T.float32 = T.shuffle_down(w, 1, width=4)
        if b * 40 + t + 1 < n and t % 4 != 3:
            Y[b * 40 + t + 1] = z
        if b * 40 + t < n and t % 4 == 0:
            Y[b * 40 + t] = w
""",
    )
