"""A tensor in CSF read at coordinates of other axes: each level is looked up once, so modules grow with the
levels and accesses, and results at every stage are those of a dictionary of the elements."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer_ir.interpret import run
from gossamer_ir.interpret.interpreter_errors import InterpreterError
from gossamer_ir.nodes import Search
from gossamer_ir.script import parse_module
from gossamer_ir.traversal.walk import walk
from gossamer_ir.verify import verify
from gossamer_lower import FLAT_PASSES, lower_buffers, lower_iterations

LEVELS = "JKLMNOPQ"
SIZE = 6
INDICES = {"coordinates": "j", "loads": "X[i]", "lookups": "S[0, i]"}


def csf(levels, index, *, accesses=1, condition=None):
    """A program that reads `B[0, index, index, ...]`, of so many compressed levels."""
    names = LEVELS[:levels]
    arrays = ", ".join(f"p{name}: T.handle, c{name}: T.handle" for name in names)
    sizes = ", ".join(f"n{name}: T.int64" for name in names)
    axes = [
        f"    {name} = T.sp.compressed_varied({parent}, (n, n{name}), (p{name}, c{name}))"
        for parent, name in zip("R" + names, names, strict=False)
    ]
    reads = [f"B[0, {', '.join([index] * (levels - 1))}, {index} - {at}]" for at in range(accesses)]
    value = " + ".join(reads)
    if condition is not None:
        value = f"T.if_then_else({condition}, {value}, 0.0)"
    return parse_module(f"""
@T.prim_func
def program(b: T.handle, y: T.handle, x: T.handle, s: T.handle, pS: T.handle, cS: T.handle, {arrays},
            n: T.int64, nS: T.int64, {sizes}) -> None:
    T.func_attr({{"sparse_tir_level": 2}})
    R = T.sp.dense_fixed(1)
    C = T.sp.compressed_varied(R, (n, nS), (pS, cS))
{chr(10).join(axes)}
    D = T.sp.dense_fixed(n)
    E = T.sp.dense_fixed(n)
    B = T.sp.match_buffer(b, (R, {", ".join(names)}), "float32")
    X = T.sp.match_buffer(x, (D,), "int32")
    S = T.sp.match_buffer(s, (R, C), "int32", default=2)
    Y = T.sp.match_buffer(y, (D,), "float32")
    with T.sp.iteration([D, E], "SR", "look") as [i, j]:
        Y[i] = Y[i] + {value}
""")


def stages(module):
    """The module before the passes and after each."""
    yield module
    for lower in (lower_iterations, lower_buffers, *FLAT_PASSES):
        module = lower(module)
        yield module


def nodes(module):
    return sum(1 for _ in walk(module))


class Tensor:
    """Random elements, about half of them on the diagonal, as a dictionary and as the arrays of CSF."""

    def __init__(self, levels, rng):
        points = {tuple(map(int, rng.integers(0, SIZE, levels))) for _ in range(30)}
        points |= {(at,) * (levels - 1) + (last,) for at in (0, 2, 3) for last in (1, at)}
        self.values = {point: float(rng.integers(1, 9)) for point in sorted(points)}
        self.arguments = {"b": np.array(list(self.values.values()), np.float32)}
        above = [()]
        for depth, name in enumerate(LEVELS[:levels], 1):
            held = sorted({point[:depth] for point in points})
            offsets = np.cumsum([0, *(sum(each[:-1] == fiber for each in held) for fiber in above)])
            self.arguments[f"p{name}"] = offsets.astype(np.int32)
            self.arguments[f"c{name}"] = np.array([each[-1] for each in held], np.int32)
            self.arguments[f"n{name}"] = len(held)
            above = held


@pytest.mark.parametrize("index", INDICES.values(), ids=INDICES)
def test_modules_grow_with_the_levels(index):
    counts = [[nodes(after) for after in stages(csf(levels, index))] for levels in range(2, 9)]
    for pass_counts in zip(*counts, strict=True):
        steps = np.diff(pass_counts)
        # The let of a level repeats the conditions of those above, which bounds are proved from.
        assert (np.diff(steps) <= 8).all(), pass_counts
    assert max(counts[-1]) < 1_600


@pytest.mark.parametrize("index", INDICES.values(), ids=INDICES)
@pytest.mark.parametrize("levels", [3, 6])
def test_modules_grow_with_the_accesses(levels, index):
    counts = [
        [nodes(after) for after in stages(csf(levels, index, accesses=accesses))]
        for accesses in (2, 4, 6, 8)
    ]
    for pass_counts in zip(*counts, strict=True):
        steps = np.diff(pass_counts)
        assert max(steps) <= 1.2 * min(steps), pass_counts


@pytest.mark.parametrize("levels", [2, 3, 6])
def test_a_level_is_searched_once(levels):
    after = lower_buffers(lower_iterations(csf(levels, "j")))
    assert sum(isinstance(node, Search) for node in walk(after)) == levels


@pytest.mark.parametrize("index", INDICES.values(), ids=INDICES)
@pytest.mark.parametrize("accesses", [1, 3])
@pytest.mark.parametrize("levels", [2, 3, 4, 5, 6])
def test_results_are_those_of_a_dictionary(levels, accesses, index):
    rng = np.random.default_rng(levels)
    tensor = Tensor(levels, rng)
    x = rng.integers(-1, SIZE + 1, SIZE).astype(np.int32)
    held = {0: 3, 1: 0, 4: SIZE + 2}
    coordinate = {
        "j": lambda i, j: j,
        "X[i]": lambda i, j: x[i],
        "S[0, i]": lambda i, j: held.get(i, 2),
    }
    expected = np.zeros(SIZE, np.float32)
    for i, j in np.ndindex(SIZE, SIZE):
        at = int(coordinate[index](i, j))
        for access in range(accesses):
            expected[i] += tensor.values.get((at,) * (levels - 1) + (at - access,), 0)
    assert expected.any()
    for module in stages(csf(levels, index, accesses=accesses)):
        y = np.zeros(SIZE, np.float32)
        run(verify(module), arguments(tensor, x=x, held=held, y=y))
        np.testing.assert_array_equal(y, expected)


def arguments(tensor, *, x, held, y):
    return tensor.arguments | {
        "x": x, "y": y, "n": SIZE, "nS": len(held), "s": np.array(list(held.values()), np.int32),
        "pS": np.array([0, len(held)], np.int32), "cS": np.array(list(held), np.int32),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("condition", "stops"), [("i < 0", False), ("X[i] < n", False), ("0 <= i", True)]
)
def test_an_index_out_of_bounds_stops_only_where_it_is_evaluated(condition, stops):
    tensor, rest = Tensor(3, np.random.default_rng(1)), {"held": {0: 1}}
    x = np.full(SIZE, SIZE + 5, np.int32)
    for module in stages(csf(3, "X[X[i]]", condition=condition)):
        kernel_arguments = arguments(tensor, x=x, y=np.zeros(SIZE, np.float32), **rest)
        if stops:
            with pytest.raises(InterpreterError):
                run(verify(module), kernel_arguments)
        else:
            run(verify(module), kernel_arguments)
            assert not kernel_arguments["y"].any()
