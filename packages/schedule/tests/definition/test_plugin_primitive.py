"""Primitives of plugins: their names, the checks of what they take and return, builders and traces."""

from typing import Literal

import pytest
from msgspec.structs import replace

from gossamer_ir.errors import PluginError, ScheduleError
from gossamer_ir.interchange.records import Step
from gossamer_schedule import ScheduleBuilder, reorder, replay, split, unroll
from gossamer_schedule.plugin_api import (
    LOOP_STAGES,
    Change,
    change_of,
    find_loop,
    plugin_primitive,
    schedule_error,
)
from gossamer_schedule.trace.replay import parameters_of
from gossamer_testkit.examples import MATMUL, SCALE

PLUGIN = "toy-chip"


@plugin_primitive(PLUGIN, stages=LOOP_STAGES)
def unroll_by(root, loop: str, *, factor: int = 4, function: str | None = None):
    """Split a loop by a factor, and unroll the inner loop."""
    halves = split(root.module, loop, factors=(None, factor), function=function)
    unrolled = unroll(halves.module, halves.names[1], function=function)
    return Change(change_of(unrolled, root).root, halves.names, halves.forwards)


@plugin_primitive(PLUGIN, stages=LOOP_STAGES)
def interchange(root, *loops: str, function: str | None = None):
    """Reverse the order of loops."""
    if len(loops) < 2:
        raise schedule_error(f"{root.primitive}.loops", "There are not enough loops.")
    return change_of(reorder(root.module, *reversed(loops), function=function), root)


@plugin_primitive(PLUGIN, stages=LOOP_STAGES)
def broken(root, loop: str, *, how: str, function: str | None = None):
    """Return what `how` says."""
    cursor = find_loop(root, loop=loop)
    if how == "raises":
        raise ZeroDivisionError("no such loop")
    if how == "invalid":
        return Change(cursor.replace_with((replace(cursor.node, var="other"),)), ())
    return None


PRIMITIVES = {primitive.op: primitive for primitive in (unroll_by, interchange, broken)}


@pytest.fixture
def builder():
    return ScheduleBuilder(SCALE, primitives=PRIMITIVES)


@pytest.mark.parametrize(
    "annotation",
    ['Literal["left", "right"]', Literal["left", "right"], Literal["left", "right"] | None],
)
def test_a_word_that_its_annotation_does_not_list_is_refused(annotation):
    def turn(root, *, side, function: str | None = None):
        return Change(root, (side,))

    turn.__annotations__["side"] = annotation
    turned = plugin_primitive(PLUGIN, stages=LOOP_STAGES)(turn)
    assert turned(SCALE, side="left").names == ("left",)
    with pytest.raises(ScheduleError, match=r"'left' or 'right'. Did you mean 'left'\?") as caught:
        turned(SCALE, side="lef")
    assert caught.value.code == "schedule.toy-chip.turn.side"
    with pytest.raises(ScheduleError, match="wrong type"):
        turned(SCALE, side=3)


def test_its_name_is_that_of_the_plugin_and_of_the_function():
    assert [*PRIMITIVES] == ["toy-chip.unroll_by", "toy-chip.interchange", "toy-chip.broken"]
    assert unroll_by(SCALE, "i").step == Step("toy-chip.unroll_by", {"loop": "i"})
    assert parameters_of("toy-chip.unroll_by", PRIMITIVES) == ("loop", "factor=...", "function=...")


def test_a_builder_applies_it_by_name_and_follows_handles(builder):
    (loop,) = builder.get_loops("scale")
    builder.apply("toy-chip.unroll_by", loop, factor=8)
    assert builder.names == ("i_0", "i_1")
    outer = builder.get_loops("scale")[0]
    assert builder.copy().apply("toy-chip.unroll_by", outer).names == ("i_0_0", "i_0_1")


def test_its_steps_are_written_and_replayed(builder):
    builder.apply("toy-chip.unroll_by", "i", factor=8).parallel("i_0")
    again = ScheduleBuilder.from_json(SCALE, builder.to_json(), primitives=PRIMITIVES)
    assert again.module == builder.module == replay(SCALE, builder.trace, primitives=PRIMITIVES)
    names = {}
    exec(builder.to_python(), names)
    assert names["schedule"](ScheduleBuilder(SCALE, primitives=PRIMITIVES)).trace == builder.trace


def test_loops_may_be_given_by_position_or_as_one_argument():
    builders = [ScheduleBuilder(MATMUL, primitives=PRIMITIVES) for _ in range(3)]
    builders[0].apply("toy-chip.interchange", "j", "l")
    names = {}
    exec(builders[0].to_python(), names)
    names["schedule"](builders[1])
    builders[2].reorder(loops=("l", "j"))
    assert builders[0].module == builders[1].module == builders[2].module
    with pytest.raises(ScheduleError, match="is given argument 'loops' twice"):
        builders[0].reorder("l", "j", loops=("l", "j"))


def test_a_primitive_of_gossamer_has_its_plain_name(builder):
    assert builder.apply("split", "i", factors=(None, 8)).trace[0].op == "split"


@pytest.mark.parametrize(
    ("op", "args", "code", "message"),
    [
        ("toy-chip.unroll_by", {}, "replay.arguments", "toy-chip.unroll_by needs argument 'loop'"),
        ("toy-chip.unroll_by", {"loop": "k"}, "split.no_loop", "There is no loop 'k'"),
        ("toy-chip.broken", {"loop": "k", "how": ""}, "toy-chip.broken.no_loop", "no loop 'k'"),
        ("toy-chip.interchange", {"loops": ()}, "toy-chip.interchange.loops", "not enough"),
        ("toy-chip.flip", {}, "replay.no_primitive", "no primitive 'toy-chip.flip'"),
        ("no-chip.flip", {}, "replay.no_plugin", "needs the plugin 'no-chip'"),
        (7, {}, "replay.no_primitive", "A primitive is given as 7; expected its name"),
    ],
)
def test_what_cannot_be_applied_is_refused(op, args, code, message, builder):
    with pytest.raises(ScheduleError, match=message) as caught:
        builder.apply(op, **args)
    assert caught.value.code == f"schedule.{code}"
    assert builder.module is SCALE


def test_the_primitives_of_the_plugin_are_listed(builder):
    with pytest.raises(
        ScheduleError, match=r"Available primitives: 'toy-chip\.unroll_by', 'toy-ch"
    ):
        builder.apply("toy-chip.flip")


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("raises", "cannot apply its primitive 'toy-chip.broken': ZeroDivisionError: no such loop"),
        ("invalid", "cannot apply its primitive 'toy-chip.broken': VerifyError"),
        ("nothing", "it returned None; expected a Change"),
    ],
)
def test_a_broken_primitive_is_blamed_on_the_plugin(how, message, builder):
    with pytest.raises(PluginError, match=message) as caught:
        builder.apply("toy-chip.broken", loop="i", how=how)
    assert caught.value.code == "plugin.failed"


def test_arguments_that_a_step_cannot_hold_are_refused_when_the_plugin_is_loaded():
    def scaled(root, loop: str, *, by: float, function: str | None = None): ...

    def untyped(root, loop, *, function: str | None = None): ...

    def alone(root, loop: str): ...

    decorate = plugin_primitive(PLUGIN, stages=LOOP_STAGES)
    with pytest.raises(
        TypeError, match="argument 'by' of scaled is of type float; expected one of"
    ):
        decorate(scaled)
    with pytest.raises(TypeError, match="argument 'loop' of untyped is of type not declared"):
        decorate(untyped)
    with pytest.raises(TypeError, match="alone has no keyword 'function"):
        decorate(alone)
