"""Random programs that have derivatives, for adjoints: what the general grammar draws is mostly refused.

They have one or two iterations over rows `I`, stored elements `J` or `L` of two patterns, columns `N` and
features `K`. The pattern of `L` contains that of `J`, so that elements of a matrix over `L` can be looked up
at the coordinates of `J`. Values are such that no result is near a point without a derivative: arguments of
functions are bounded, and no two values are equal.
"""

from __future__ import annotations

from random import Random
from typing import Any, NamedTuple

import numpy as np

SIZES = {"m": 4, "n": 5, "k": 2}
LENGTHS = {"I": "m", "N": "n", "K": "k"}
BUFFERS = {"A": "I, J", "B": "I, L", "X": "N, K", "V": "N", "S": "I", "W": "K"}
RESULTS = {"C": "I", "D": "N", "E": "I, K", "Z": "I, J"}
MAX_DEPTH = 3


class SmoothProgram(NamedTuple):
    """The script of a program in float64, and its arguments by handle."""

    script: str
    arguments: dict[str, Any]


class _Leaves(NamedTuple):
    """The elements that an expr may load, and the vars of its iteration."""

    loads: list[str]
    indices: list[str]


def draw_smooth_program(random: Random) -> SmoothProgram:
    """Return a program, with arguments for it."""
    used: dict[str, str] = {}
    lines = _iteration(random, used, number=0, earlier=None)
    if random.random() < 0.6:
        (first,) = used
        lines += _iteration(random, used, number=1, earlier=first)
    buffers = {**BUFFERS, **used}
    scratch = next(iter(used)) if len(used) > 1 and random.random() < 0.5 else None
    return SmoothProgram(_script(buffers, lines, scratch), _arguments(random, [*buffers], scratch))


def _script(buffers: dict[str, str], lines: list[str], scratch: str | None) -> str:
    passed = [name for name in buffers if name != scratch]
    handles = "".join(f"{name.lower()}: T.handle, " for name in passed)
    matched = [
        f'    {name} = T.sp.match_buffer({name.lower()}, ({buffers[name]},), "float64")'
        for name in passed
    ]
    if scratch is not None:
        matched.append(f'    {scratch} = T.sp.alloc_buffer(({buffers[scratch]},), "float64")')
    return "\n".join(
        [
            "@T.prim_func",
            f"def f({handles}p: T.handle, q: T.handle, o: T.handle, r: T.handle, "
            "m: T.int64, n: T.int64, k: T.int64) -> None:",
            '    T.func_attr({"sparse_tir_level": 2})',
            "    I = T.sp.dense_fixed(m)",
            '    J = T.sp.compressed_varied(I, n, (p, q), "int32")',
            '    L = T.sp.compressed_varied(I, n, (o, r), "int32")',
            "    N = T.sp.dense_fixed(n)",
            "    K = T.sp.dense_fixed(k)",
            *matched,
            *(f"    {line}" for line in lines),
            "",
        ]
    )


def _iteration(
    random: Random, used: dict[str, str], *, number: int, earlier: str | None
) -> list[str]:
    """Return the lines of an iteration that computes a result, which is added to those that are `used`; it
    may read an earlier one."""
    result = random.choice([name for name in RESULTS if name not in used])
    axes, kinds, index = _space(random, result)
    leaves = _leaves(axes, earlier)
    name = ("first", "second")[number]
    vars = {"I": "i", "J": "j", "L": "j", "K": "c"}
    listed = ", ".join(vars[axis] for axis in axes)
    lines = [
        f'with T.sp.iteration([{", ".join(axes)}], "{kinds}", "{name}") as [{listed}]:',
        *(f"    {line}" for line in _store(random, f"{result}[{index}]", kinds, leaves)),
    ]
    used[result] = RESULTS[result]
    # Vars of the second iteration have names of their own.
    return [_renamed(line) for line in lines] if number else lines


def _renamed(line: str) -> str:
    for name in ("i", "j", "c"):
        for before, after in (("[", "]"), ("[", ","), (" ", "]"), (" ", ",")):
            line = line.replace(f"{before}{name}{after}", f"{before}{name}_1{after}")
        for operator in ("<", ">", "%"):
            line = line.replace(f"({name} {operator}", f"({name}_1 {operator}")
    return line


def _space(random: Random, result: str) -> tuple[list[str], str, str]:
    """Return the axes of an iteration, their kinds, and the index of the result."""
    sparse = random.choice("JL")
    spaces = {
        "C": [(["I", sparse], "SR"), (["I", sparse, "K"], "SRR"), (["I"], "S")],
        "D": [(["I", sparse], "RS"), (["I", sparse, "K"], "RSR")],
        "E": [(["I", sparse, "K"], "SRS"), (["I", "K"], "SS")],
        "Z": [(["I", "J"], "SS"), (["I", "J", "K"], "SSR")],
    }
    axes, kinds = random.choice(spaces[result])
    return axes, kinds, {"C": "i", "D": "j", "E": "i, c", "Z": "i, j"}[result]


def _leaves(axes: list[str], earlier: str | None) -> _Leaves:
    at = {"I": "i", "J": "j", "L": "j", "K": "c"}
    indices = [at[axis] for axis in axes]
    loads = ["S[i]"]
    if "j" in indices:
        # They have the pattern of L, which contains that of J.
        loads += ["B[i, j]", "V[j]"]
    if "J" in axes:
        loads += ["A[i, j]", "A[i, j]"]
    if "c" in indices:
        loads.append("W[c]")
    if "c" in indices and "j" in indices:
        loads.append("X[j, c]")
    readable = {
        "C": "C[i]",
        "D": "D[j]" if "j" in indices else "",
        "E": "E[i, c]" if "c" in indices else "",
        "Z": "Z[i, j]" if "J" in axes else "",
    }
    if earlier is not None and readable[earlier]:
        loads += [readable[earlier]] * 3
    return _Leaves(loads, indices)


def _store(random: Random, target: str, kinds: str, leaves: _Leaves) -> list[str]:
    """Return the statements in an iteration: a reduction if it reduces an axis, else a store."""
    value = _expr(random, leaves, MAX_DEPTH)
    if "R" not in kinds:
        if random.random() < 0.3:
            other = _expr(random, leaves, MAX_DEPTH - 1)
            condition = _condition(random, leaves)
            return [
                f"if {condition}:",
                f"    {target} = {value}",
                "else:",
                f"    {target} = {other}",
            ]
        return [f"{target} = {value}"]
    kind = random.choice(["sum", "sum", "difference", "max", "min"])
    initial = {"max": "T.float64(-50.0)", "min": "T.float64(50.0)"}.get(kind, "T.float64(0.0)")
    if kind in ("sum", "difference") and target == "C[i]" and random.random() < 0.4:
        initial = _expr(random, _Leaves(["S[i]"], ["i"]), 1)
    reduced = {
        "sum": f"{target} + {value}",
        "difference": f"{target} - {value}",
        "max": f"T.max({target}, {value})",
        "min": f"T.min({target}, {value})",
    }[kind]
    lines = [f"{target} = {reduced}"]
    if random.random() < 0.3:
        lines = [f"if {_condition(random, leaves)}:", f"    {lines[0]}"]
    return ["with T.init():", f"    {target} = {initial}", *lines]


UNARY = {
    "exp": "T.exp(T.sin({}))",
    "exp2": "T.exp2(T.cos({}))",
    "expm1": "T.expm1(T.tanh({}))",
    "log": "T.log(T.abs({}) + 0.5)",
    "log2": "T.log2(T.abs({}) + 0.5)",
    "log10": "T.log10(T.abs({}) + 0.5)",
    "log1p": "T.log1p(T.abs({}))",
    "sqrt": "T.sqrt(T.abs({}) + 0.5)",
    "rsqrt": "T.rsqrt(T.abs({}) + 0.5)",
    "tanh": "T.tanh({})",
    "sigmoid": "T.sigmoid({})",
    "erf": "T.erf({})",
    "sin": "T.sin({})",
    "cos": "T.cos({})",
    "negation": "(-{})",
    "quotient of a constant": "(1.5 / (T.abs({}) + 0.5))",
}
BINARY = {
    "sum": "({} + {})",
    "difference": "({} - {})",
    "product": "({} * {})",
    "quotient": "({} / (T.abs({}) + 0.5))",
    "max": "T.max({}, {})",
    "min": "T.min({}, {})",
    "pow": "T.pow(T.abs({}) + 0.5, T.sin({}))",
}


def _expr(random: Random, leaves: _Leaves, depth: int) -> str:
    if depth == 0 or random.random() < 0.15:
        return random.choice([*leaves.loads, *leaves.loads, "0.75"])
    kind = random.choice(["unary", "binary", "binary", "chosen", "fma"])
    operands = [_expr(random, leaves, depth - 1) for _ in range(3)]
    if kind == "unary":
        return random.choice([*UNARY.values()]).format(operands[0])
    if kind == "binary":
        return random.choice([*BINARY.values()]).format(*operands[:2])
    if kind == "fma":
        return f"T.fma({', '.join(operands)})"
    function = random.choice(["T.Select", "T.if_then_else"])
    return f"{function}({_condition(random, leaves)}, {operands[0]}, {operands[1]})"


def _condition(random: Random, leaves: _Leaves) -> str:
    index = random.choice(leaves.indices)
    return random.choice(
        [
            f"({index} < 1)",
            f"({index} > 0)",
            f"({index} % 2 == 0)",
            f"({random.choice(leaves.loads)} > 0.1)",
            f"({random.choice(leaves.loads)} < {random.choice(leaves.loads)})",
        ]
    )


def _arguments(random: Random, names: list[str], scratch: str | None) -> dict[str, Any]:
    """Return arguments whose values are not near 0; no two are equal."""
    generator = np.random.default_rng(random.getrandbits(32))
    wide = generator.random((SIZES["m"], SIZES["n"])) < 0.7
    narrow = wide & (generator.random(wide.shape) < 0.6)
    nonzeros = {"J": int(narrow.sum()), "L": int(wide.sum())}
    axes_of = {**BUFFERS, **RESULTS}
    arguments: dict[str, Any] = {}
    for name in names:
        if name != scratch:
            shape = _shape(axes_of[name].split(", "), nonzeros)
            signs = generator.choice([-1, 1], shape)
            arguments[name.lower()] = generator.uniform(0.5, 2.0, shape) * signs
    for (offsets, columns), mask in ((("p", "q"), narrow), (("o", "r"), wide)):
        arguments[offsets] = np.r_[0, np.cumsum(mask.sum(1))].astype(np.int32)
        arguments[columns] = np.nonzero(mask)[1].astype(np.int32)
    return {**arguments, **SIZES}


def _shape(axes: list[str], nonzeros: dict[str, int]) -> tuple[int, ...]:
    if axes[-1] in nonzeros:
        return (nonzeros[axes[-1]],)
    return tuple(SIZES[LENGTHS[axis]] for axis in axes)
