"""Lets, loops, branches, guards, facts, searches, scalars, lane reductions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tools.corpus_programs.every_operation import FLOATS, NATIVE_NUMBERS
from tools.corpus_programs.program_source import CorpusProgram, flat, function

X_TO_Y = {"x": ["small", "int64"], "y": ["untouched", "int64"]}
"""The arrays of programs that compute an integer from another."""
SEARCHES = {
    "lower": ("lower_positions", "KEYS[middle] < V[i]"),
    "upper": ("upper_positions", "KEYS[middle] <= V[i]"),
}
REDUCED = (
    ("float32", (2, 4, 8, 16, 64)),
    ("float64", (4, 8)),
    ("int32", (8, 16)),
    ("int64", (2, 8)),
)
ROW_SUMS = """
for i in T.serial(m):
    Y[i] = T.float32(0)
    for j in T.serial(T.int64(P[i]), T.int64(P[i + 1])):
        Y[i] = Y[i] + A[j]
"""
"""The body of programs whose rows have the elements from P[i] to P[i + 1]."""
TRANSPOSED = (
    ("add", "float32", 8, 8), ("add", "float32", 16, 16), ("add", "float32", 2, 16),
    ("add", "float64", 8, 4), ("max", "float32", 4, 8), ("min", "int32", 4, 4),
    ("mul", "int64", 2, 2), ("and", "bool", 8, 8), ("or", "bool", 4, 8),
)  # fmt: skip


def sources() -> Iterator[CorpusProgram]:
    """Yield the sources of these programs."""
    yield from _lets_and_branches()
    yield from _loops()
    yield from _loops_without_results()
    yield from _searches()
    yield from _guards_and_facts()
    for dtype in ("bool", *NATIVE_NUMBERS):
        yield _scalar(dtype)
    for dtype, counts in REDUCED:
        for lanes in counts:
            yield _lane_reduce(("add", "mul", "min", "max"), dtype, lanes)
    yield _lane_reduce(("and", "or"), "bool", 8)
    for op, dtype, count, lanes in TRANSPOSED:
        yield _transpose_reduce(op, dtype, count, lanes)
    for dtype in FLOATS:
        yield _fma(dtype)


def _lets_and_branches() -> Iterator[CorpusProgram]:
    yield over_vectors(
        "lets", "Lets of lets, and lets in loops.", "scaled", X_TO_Y, """
one: T.int64 = T.int64(1)
two: T.int64 = one + one
for i in T.serial(n):
    x_i: T.int64 = X[i]
    twice: T.int64 = x_i * two
    Y[i] = twice + x_i + one
""")  # fmt: skip
    yield over_vectors(
        "branches", "Ifs within ifs.", "sign_classes", X_TO_Y, """
for i in T.serial(n):
    if X[i] > 0:
        if X[i] > 5:
            Y[i] = T.int64(2)
        else:
            Y[i] = T.int64(1)
    else:
        if X[i] < 0:
            Y[i] = T.int64(-1)
        else:
            Y[i] = T.int64(0)
""")  # fmt: skip


def _loops() -> Iterator[CorpusProgram]:
    """Yield loops whose iterations, ends or extents depend on others."""
    yield over_vectors(
        "prefix_sums", "Each iteration reads what the one before it wrote.", "prefix_sums", X_TO_Y, """
if n > 0:
    Y[0] = X[0]
for i in T.serial(1, n):
    Y[i] = Y[i - 1] + X[i]
""")  # fmt: skip
    yield over_vectors(
        "while", "A loop whose end is not known: Collatz steps.", "collatz",
        {"y": ["zeros", "int64"], "p": ["natural", "int64"]}, """
for i in T.serial(n):
    while P[i] > 1:
        if P[i] % 2 == 0:
            P[i] = P[i] // 2
        else:
            P[i] = P[i] * 3 + 1
        Y[i] = Y[i] + 1
""")  # fmt: skip
    yield over_vectors(
        "triangle", "A loop whose extent is the variable of the loop around it.", "triangle",
        {"y": ["untouched", "int64", [1, 0], [1, 0]]}, """
for i in T.serial(n):
    for j in T.serial(i):
        Y[i, j] = i * n + j
""", shapes={"y": "(n, n)"}, sizes=[0, 1, 2, 9])  # fmt: skip


def _loops_without_results() -> Iterator[CorpusProgram]:
    """Yield loops that do nothing, or of which some statements do nothing."""
    yield over_vectors(
        "empty_loops", "Loops of no iterations, also of negative extent.", "unchanged", X_TO_Y, """
for i in T.serial(0):
    Y[0] = T.int64(1)
for j in T.serial(5, 5 - n):
    Y[j] = T.int64(2)
for k in T.serial(-n):
    Y[k] = T.int64(3)
""")  # fmt: skip
    yield over_vectors(
        "prefetch", "Hints far outside the buffer change nothing.", "copied", X_TO_Y, """
for i in T.serial(n):
    T.prefetch(X, i + 64)
    T.prefetch(X, i - 1000000007)
    Y[i] = X[i]
""")  # fmt: skip


def _searches() -> Iterator[CorpusProgram]:
    """Yield binary searches as loops, the lowered form of lookups."""
    for dtype in ("int32", "int64"):
        for name, (oracle, condition) in SEARCHES.items():
            yield _search(name, dtype, oracle, condition, "Y[i] = LOW[0]")
        exact = """Y[i] = T.int64(-1)
    if LOW[0] < n:
        if KEYS[LOW[0]] == V[i]:
            Y[i] = LOW[0]"""
        yield _search("exact", dtype, "exact_positions", SEARCHES["lower"][1], exact)


def _search(name: str, dtype: str, oracle: str, condition: str, result: str) -> CorpusProgram:
    body = f"""
for i in T.serial(m):
    LOW = T.alloc_buffer((1,), "int64", scope="local")
    HIGH = T.alloc_buffer((1,), "int64", scope="local")
    LOW[0] = T.int64(0)
    HIGH[0] = n
    while LOW[0] < HIGH[0]:
        middle: T.int64 = (LOW[0] + HIGH[0]) // 2
        if {condition}:
            LOW[0] = middle + 1
        else:
            HIGH[0] = middle
    {result}
"""
    text = function(
        "search",
        "keys: handle, v: handle, y: handle, n: int64, m: int64",
        buffers=f"KEYS = keys (n,) {dtype}\nV = v (m,) {dtype}\nY = y (m,) int64",
        body=body,
    )
    return CorpusProgram(f"search_{name}_{dtype}", f"A binary search ({name}) as a loop.", flat(text),
                  "search_cases", oracle, {"dtype": dtype})  # fmt: skip


def _guards_and_facts() -> Iterator[CorpusProgram]:
    params = "x: handle, p: handle, y: handle, n: int64, m: int64"
    buffers = "X = x (n,) float32\nP = p (m,) int64\nY = y (m,) float32"
    loop = "for i in T.serial(m):\n"
    guarded = "T.guard(P[i] >= 0 and P[i] < n, X)\n"
    bodies = {
        "guard": loop + f"    {guarded}    Y[i] = X[P[i]]",
        "guard_after_allocation": 'S = T.alloc_buffer((n + 1000,), "float32")\n'
        f"{loop}    {guarded}    S[P[i]] = X[P[i]]\n    Y[i] = S[P[i]]",
        "guard_in_branch": f"{loop}    if m > 0:\n        {guarded}        Y[i] = X[P[i]]",
    }
    for name, body in bodies.items():
        text = function("take", params, buffers=buffers, body=body)
        yield CorpusProgram(name, "Guards that hold and guards that fail.", flat(text), "guard_cases",
                     "gathered", {"buffer": "X"})  # fmt: skip
    for dtype in ("int32", "int64"):
        text = function(
            "sums",
            "a: handle, y: handle, indptr: handle, indices: handle, m: int64, n: int64, nnz: int64",
            buffers=f"A = a (nnz,) float32\nY = y (m,) float32\n"
            f"P = indptr (m + 1,) {dtype}\nQ = indices (nnz,) {dtype}",
            facts="in_range(P, 0, nnz + 1)\nmonotone(P)\nhas_value(P, 0, 0)\nhas_value(P, m, nnz)\n"
            "in_range(Q, 0, n)\n"
            "sorted_segments(Q, P, unique=True)",
            body=ROW_SUMS,
        )
        yield CorpusProgram(f"facts_{dtype}", "What is assumed of index arrays is checked before the call.",
                     flat(text), "fact_cases", "row_sums", {"index_dtype": dtype})  # fmt: skip
    yield _distinct_positions()
    yield _products_of_lengths()
    yield _related_rows()


def _distinct_positions() -> CorpusProgram:
    """Return a program with a fact about all values of an array."""
    text = function(
        "permute",
        "x: handle, p: handle, y: handle, n: int64",
        buffers="X = x (n,) float32\nP = p (n,) int32\nY = y (n,) float32",
        facts="in_range(P, 0, n)\ndistinct(P)",
        body="for i in T.serial(n):\n    Y[P[i]] = X[i]",
    )
    return CorpusProgram("facts_distinct", "Elements are stored where no other element is.", flat(text),
                  "distinct_cases", "scattered", {})  # fmt: skip


def _products_of_lengths() -> CorpusProgram:
    """Return a program with a fact about three arrays of offsets."""
    text = function(
        "sums",
        "a: handle, y: handle, indptr: handle, left: handle, right: handle, m: int64, nnz: int64",
        buffers="A = a (nnz,) float32\nY = y (m,) float32\n"
        "P = indptr (m + 1,) int32\nL = left (m + 1,) int32\nR = right (m + 1,) int32",
        facts="in_range(P, 0, nnz + 1)\nmonotone(P)\nhas_value(P, 0, 0)\nhas_value(P, m, nnz)\n"
        "product_steps(P, L, R)",
        body=ROW_SUMS,
    )
    return CorpusProgram("facts_products", "Sums over matrices of different sizes, stored one after another.",
                  flat(text), "product_cases", "segment_sums", {})  # fmt: skip


def _related_rows() -> CorpusProgram:
    """Return a program with facts about the rows of three matrices."""
    others = {"W": "wide", "D": "apart"}
    text = function(
        "sums", "a: handle, y: handle, indptr: handle, indices: handle, m: int64, n: int64, nnz: int64, "
        + ", ".join(f"indptr_{name}: handle, indices_{name}: handle, nnz_{name}: int64"
                    for name in others.values()),
        buffers="A = a (nnz,) float32\nY = y (m,) float32\nP = indptr (m + 1,) int32\n"
        "Q = indices (nnz,) int32\n"
        + "\n".join(f"P{key} = indptr_{name} (m + 1,) int32\nQ{key} = indices_{name} (nnz_{name},) int32"
                    for key, name in others.items()),
        facts="in_range(P, 0, nnz + 1)\nmonotone(P)\nhas_value(P, 0, 0)\nhas_value(P, m, nnz)\n"
        "in_range(Q, 0, n)\nsorted_segments(Q, P, unique=True)\n"
        "sorted_segments(QW, PW, unique=True)\nsorted_segments(QD, PD, unique=True)\n"
        "subset(Q, QW)\ndisjoint(Q, QD)", body=ROW_SUMS,
    )  # fmt: skip
    return CorpusProgram("facts_relations", "Rows within the rows of one matrix and beside those of another.",
                  flat(text), "relation_cases", "row_sums", {})  # fmt: skip


def _scalar(dtype: str) -> CorpusProgram:
    text = function(
        "scalar", f"y: handle, s: {dtype}", buffers=f"Y = y (1,) {dtype}", body="Y[0] = s"
    )
    return CorpusProgram(f"scalar_{dtype}", f"A scalar parameter of {dtype}.", flat(text), "scalar_values",
                  "scalar_stored", {"dtype": dtype})  # fmt: skip


def _lane_reduce(ops: tuple[str, ...], dtype: str, lanes: int) -> CorpusProgram:
    recipe = "rows of flags" if dtype == "bool" else "small"
    run = f"X[T.ramp(i * {lanes}, 1, {lanes})]"
    stores = [f'Y[{row}, i] = T.lane_reduce("{op}", {run})' for row, op in enumerate(ops)]
    return over_vectors(
        f"lane_reduce_{dtype}x{lanes}",
        f"The lanes of each vector combined: {', '.join(ops)}.",
        "lane_reduced",
        {"x": [recipe, dtype, [lanes, 0]], "y": ["zeros", dtype, [0, len(ops)], [1, 0]]},
        "\n    ".join(["for i in T.serial(n):", *stores]),
        shapes={"x": f"(n * {lanes},)", "y": f"({len(ops)}, n)"},
        options={"ops": list(ops), "lanes": lanes},
        sizes=[0, 1, 7],
    )


def _transpose_reduce(op: str, dtype: str, count: int, lanes: int) -> CorpusProgram:
    """Return a program over rows of `lanes` elements, `count` at a time, each reduced to one element."""
    recipe = "rows of flags" if dtype == "bool" else "small"
    rows = [f"X[T.ramp((i * {count} + {row}) * {lanes}, 1, {lanes})]" for row in range(count)]
    return over_vectors(
        f"transpose_reduce_{op}_{dtype}_{count}x{lanes}",
        f"Each of {count} vectors of {lanes} lanes combined by {op}, results in one vector.",
        "rows_reduced",
        {"x": [recipe, dtype, [count * lanes, 0]], "y": ["zeros", dtype, [count, 0]]},
        f"for i in T.serial(n):\n    Y[T.ramp(i * {count}, 1, {count})] = "
        f'T.transpose_reduce("{op}", {", ".join(rows)})',
        shapes={"x": f"(n * {count * lanes},)", "y": f"(n * {count},)"},
        options={"op": op, "lanes": lanes},
        sizes=[0, 1, 5],
    )


def _fma(dtype: str) -> CorpusProgram:
    recipe = "above one" if dtype == "float32" else "just above one"
    return over_vectors(
        f"fma_{dtype}",
        "A product and a sum that are rounded once.",
        "fused_multiply_add",
        {"x": [recipe, dtype], "z": [recipe, dtype], "y": ["zeros", dtype]},
        f"for i in T.serial(n):\n    Y[i] = T.fma(X[i], Z[i], T.{dtype}(-1))",
    )


def over_vectors(
    name: str, says: str, oracle: str, arrays: Mapping[str, Sequence[object]], body: str, *,
    shapes: dict[str, str] | None = None, options: dict[str, object] | None = None,
    sizes: list[int] | None = None,
) -> CorpusProgram:  # fmt: skip
    """Return a program over arrays of n elements, whose inputs the generator `vectors` makes."""
    buffers = "\n".join(
        f"{key.upper()} = {key} {(shapes or {}).get(key, '(n,)')} {recipe[1]}"
        for key, recipe in arrays.items()
    )
    params = ", ".join([*(f"{key}: handle" for key in arrays), "n: int64"])
    text = function("program", params, buffers=buffers, body=body)
    parameters = {"arrays": arrays, **({"sizes": sizes} if sizes else {}), **(options or {})}
    return CorpusProgram(name, says, flat(text), "vectors", oracle, parameters)
