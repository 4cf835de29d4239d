"""The last tile of an annotated loop is peeled; the remaining tiles have no conditions."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer_ir.interpret import run
from gossamer_ir.nodes import For, If
from gossamer_ir.script import parse_module
from gossamer_ir.traversal.walk import walk
from gossamer_lower import lower_to_flat, peel_last_iteration

TILES = """
@T.prim_func
def tiles(x: T.handle, y: T.handle, n: T.int64) -> None:
    T.func_attr({{"sparse_tir_level": 0}})
    X = T.match_buffer(x, (n, {width}), "float32")
    Y = T.match_buffer(y, (n, {width}), "float32")
    Z = T.decl_buffer((n, {width}), "float32", scope="local")
    for i in T.serial(n):
        for t in T.{kind}({tiles}, annotations={{"peel": "last"}}):
            for k_0 in T.serial(2):
                for k_1 in T.vectorized(4):
                    if t * 8 + k_0 * 4 + k_1 < {width} and X[i, 0] > 0.0:
                        Z[i, t * 8 + k_0 * 4 + k_1] = X[i, t * 8 + k_0 * 4 + k_1] * 2.0
            for k_2 in T.serial(8):
                if t * 8 + k_2 < {width}:
                    if X[i, 0] > 0.0:
                        Y[i, t * 8 + k_2] = Z[i, t * 8 + k_2]
"""


def program(width, *, tiles=None, kind="serial"):
    count = -(-width // 8) if tiles is None else tiles
    return parse_module(TILES.format(width=width, tiles=count, kind=kind))


def results(module, width):
    x = np.random.default_rng(4).integers(-9, 9, (5, width)).astype(np.float32)
    x[0, 0], x[1, 0] = 1, 0
    y = np.full_like(x, -1)
    run(module, {"x": x, "y": y, "n": 5})
    return y, np.where(x[:, :1] > 0, 2 * x, -1)


@pytest.mark.parametrize("width", [1, 7, 8, 9, 15, 16, 17, 40, 41])
def test_the_meaning_stays(width):
    for module in (
        program(width),
        peel_last_iteration(program(width)),
        lower_to_flat(program(width)),
    ):
        np.testing.assert_array_equal(*results(module, width))


def loop_over_tiles(module):
    return next(node for node in walk(module) if isinstance(node, For) and node.var == "t")


@pytest.mark.parametrize(("width", "whole"), [(9, 1), (16, 1), (17, 2), (41, 5)])
def test_whole_tiles_keep_only_conditions_of_other_things(width, whole):
    loop = loop_over_tiles(peel_last_iteration(program(width)))
    assert (loop.extent.text, loop.annotations) == (str(whole), ())
    texts = {repr(node.condition) for node in walk(loop) if isinstance(node, If)}
    assert len(texts) == 1
    assert "'X'" in texts.pop()


def test_a_tile_that_is_not_proved_whole_keeps_its_condition():
    loop = loop_over_tiles(peel_last_iteration(program(41, tiles=9)))
    assert len([node for node in walk(loop) if isinstance(node, If)]) == 3


ALONE = {"one tile": program(7), "a loop of another kind": program(41, kind="parallel")}


@pytest.mark.parametrize("name", ALONE)
def test_other_loops_only_lose_their_mark(name):
    before, after = loop_over_tiles(ALONE[name]), loop_over_tiles(peel_last_iteration(ALONE[name]))
    assert (after.extent, after.kind, after.body) == (before.extent, before.kind, before.body)
    assert after.annotations == ()
