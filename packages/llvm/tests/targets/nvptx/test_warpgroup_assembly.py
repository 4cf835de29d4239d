"""The assembly of products of warpgroups."""

import re

from gossamer_llvm.targets.nvptx.warpgroup_assembly import (
    WarpgroupOperands,
    warpgroup_assembly,
    warpgroup_wait_assembly,
)


def test_each_step_has_operands_of_its_own():
    steps = [
        WarpgroupOperands(tuple(f"i32 %a{s}{r}" for r in range(4)), f"i64 %b{s}", f"i32 %e{s}")
        for s in range(2)
    ]
    result, call = warpgroup_assembly(
        "wgmma.x", (("float %c0", "float %c1"),), steps, selector=1, immediates="1, 1, 0"
    )
    assert result == "{ float, float }"
    assert "wgmma.x {$0, $1}, {$4, $5, $6, $7}, $8, $9, 1, is_added, 1, 1, 0;" in call
    assert "wgmma.x {$0, $1}, {$10, $11, $12, $13}, $14, $15, 1, is_added, 1, 1, 0;" in call
    inputs = re.search(r"\((float.*)\) convergent", call)[1].split(", ")
    # The numbers of the inputs follow those of the two results.
    assert inputs[10 - 2 : 16 - 2] == [*steps[1].a, steps[1].b, steps[1].metadata]


def test_steps_belong_to_one_accumulator_after_the_other():
    step = WarpgroupOperands(("i64 %a",), "i64 %b", "i32 %e")
    sums = (("float %c0",), ("float %c1",))
    result, call = warpgroup_assembly("wgmma.x", sums, (step,) * 4, selector=0, immediates="")
    assert result == "{ float, float }"
    assert re.findall(r"wgmma\.x \{(.*?)\}", call) == ["$0", "$1", "$0", "$1"]
    assert call.count("wgmma.commit_group") == call.count("wgmma.wait_group") == 1


def test_products_may_be_pending():
    step = WarpgroupOperands(("i64 %a",), "i64 %b", "i32 %e")
    _, call = warpgroup_assembly(
        "wgmma.x", (("i32 %c",),), (step,), selector=0, immediates="", pending=1
    )
    assert "wgmma.wait_group.sync.aligned 1;" in call
    type_, wait = warpgroup_wait_assembly(("float %c", "i32 %d"))
    assert type_ == "{ float, i32 }"
    # The sums are results, so that nothing reads them before.
    assert '"wgmma.wait_group.sync.aligned 0;", "=&f,=&r,0,1,~{memory}"(float %c, i32 %d)' in wait


def test_the_products_are_fenced_and_waited_for():
    step = WarpgroupOperands(("i64 %a",), "i64 %b", "i32 %e")
    _, call = warpgroup_assembly("wgmma.x", (("i32 %c",),), (step,), selector=0, immediates="")
    order = ("wgmma.fence", "wgmma.x", "wgmma.commit_group", "wgmma.wait_group.sync.aligned 0")
    places = [call.index(name) for name in order]
    assert places == sorted(places)
