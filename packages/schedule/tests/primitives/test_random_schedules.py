"""Random legal schedules keep the result; a rejected step leaves the module unchanged."""

from __future__ import annotations

import warnings
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gossamer_ir.errors import ScheduleError
from gossamer_ir.nodes import Block, For
from gossamer_schedule import AmbiguousNameWarning, ScheduleBuilder, get_blocks, get_loops, replay
from gossamer_schedule.cursor.cursor_at import addressable_stmts
from gossamer_testkit import examples

pytestmark = pytest.mark.no_error_examples

FACTORS = st.sampled_from([(None, 2), (None, 3), (2, None), (2, None, 3), (2, 8), (None, 1)])
STEPS = st.sampled_from(
    [
        *("split", "reorder", "fuse", "cache", "move", "decompose", "unroll", "vectorize"),
        *("parallel", "parts", "bind", "tile", "annotate"),
    ]
)


def draw_step(data, builder: ScheduleBuilder) -> None:
    """Applies one random step, which may be rejected."""
    loops = st.sampled_from(get_loops(builder.module))
    blocks = st.sampled_from(get_blocks(builder.module))
    copies = [name for name in get_blocks(builder.module) if "local" in name]
    match data.draw(STEPS):
        case "split":
            builder.split(data.draw(loops), factors=data.draw(FACTORS))
        case "reorder":
            nest = get_loops(builder.module, data.draw(blocks))
            order = data.draw(st.permutations(nest))
            builder.reorder(*order[: data.draw(st.integers(2, 5))])
        case "fuse":
            nest = get_loops(builder.module, data.draw(blocks))
            first = data.draw(st.integers(0, max(len(nest) - 2, 0)))
            builder.fuse(*nest[first : first + data.draw(st.integers(2, 3))])
        case "parts":
            form = data.draw(st.sampled_from(["privatized", "segmented"]))
            builder.parallel_reduction(data.draw(loops), form=form, parts=3)
        case "bind":
            thread = data.draw(st.sampled_from(["blockIdx.x", "threadIdx.x"]))
            builder.bind(data.draw(loops), thread=thread)
        case "tile":
            name, loop = f"t{len(builder.trace)}", data.draw(loops)
            builder.sample_perfect_tile(loop, name=name, parts=2, largest=4)
            builder.split(loop, factors=(f"${name}_0", f"${name}_1"))
        case "annotate":
            builder.annotate(data.draw(blocks), key="origin", value=len(builder.trace))
        case "cache":
            block = data.draw(blocks)
            builder.cache_write(block, buffer=written_by(builder.module, block), scope="local")
        case "move":
            block = data.draw(st.sampled_from(copies) if copies else blocks)
            builder.reverse_compute_at(block, loop=data.draw(loops))
        case "decompose":
            builder.decompose_reduction(data.draw(blocks), loop=data.draw(loops))
        case "vectorize":
            builder.vectorize(data.draw(st.sampled_from(innermost(builder.module))))
        case op:
            getattr(builder, op)(data.draw(loops))


def written_by(module, name: str) -> str:
    blocks = [
        item for item in addressable_stmts(module.functions[0].body) if isinstance(item, Block)
    ]
    return next(item.body[0].buffer for item in blocks if item.name == name)


def innermost(module) -> list[str]:
    """The innermost loops."""
    loops = [item for item in addressable_stmts(module.functions[0].body) if isinstance(item, For)]
    return [
        item.var
        for item in loops
        if not any(isinstance(inner, For) for inner in addressable_stmts(item.body))
    ]


def schedule(data, module) -> ScheduleBuilder:
    builder = ScheduleBuilder(module)
    for _ in range(data.draw(st.integers(1, 14))):
        before = builder.module
        with suppress(ScheduleError), warnings.catch_warnings():
            warnings.simplefilter("ignore", AmbiguousNameWarning)  # any loop may be drawn
            draw_step(data, builder)
            continue
        assert builder.module is before
    assert replay(module, builder.trace) == builder.module
    return builder


@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_random_schedules_of_spmm_keep_its_result(spmm, require_spmm, data):
    features = data.draw(st.sampled_from([1, 6, 7]))
    is_constant = data.draw(st.booleans())
    builder = schedule(data, spmm(features if is_constant else None))
    require_spmm(builder.module, features, rows=4)


@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_random_schedules_of_spmv_keep_its_result(require_spmv, data):
    builder = schedule(data, examples.SPMV)
    require_spmv(builder.module, rows=5)
