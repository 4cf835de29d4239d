"""The additions of one plugin to a backend: its hooks return valid objects, and its errors name it."""

from types import SimpleNamespace

import pluggy
import pytest

from gossamer_backend.plugin_api import Pass, hookimpl
from gossamer_backend.registry import hookspecs
from gossamer_backend.registry.extension import Extension, extension_of
from gossamer_ir.errors import PluginError
from gossamer_ir.interchange.records import Schedule, ScheduleSpace, Step
from gossamer_ir.nodes import Function, Module, Param
from gossamer_machine import Machine

MODULE = Module("flat", (Function("f", (Param("n", "int64"),), ()),), "f")
SPLIT = Schedule(loop=(Step("split", {"loop": "i", "factors": (None, 4)}),))
POINT = "before vectorize_loops"
POINTS = {POINT: "loop"}


def unchanged(module):
    return module


def primitive(op):
    return SimpleNamespace(op=op)


def extension(**hooks):
    """The extension `acme` of a plugin whose hooks return these lists."""
    manager = pluggy.PluginManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    functions = {f"gossamer_{name}": (lambda items=items: items) for name, items in hooks.items()}
    manager.register(SimpleNamespace(**{name: hookimpl(f) for name, f in functions.items()}))
    return extension_of("acme", manager, points=lambda: POINTS)


def test_a_plugin_without_hooks_registers_nothing():
    assert extension() == Extension("acme", (), (), {}, ())


def test_what_hooks_return_is_registered():
    at_end, at_point = Pass("a", "flat", unchanged), Pass("b", "loop", unchanged, at=POINT)
    fuse = primitive("acme.fuse")
    result = extension(passes=[at_end, at_point], primitives=[fuse], schedules=[unchanged])
    assert result.passes == (at_end, at_point)
    assert result.primitives == {"acme.fuse": fuse}
    assert result.schedules == (unchanged,)


WRONG = {
    "no Pass": ({"passes": ["a"]}, "plugin.hook", "returned 'a'; expected objects of type 'Pass'"),
    "no rule": ({"schedules": [3]}, "plugin.hook", "returned 3"),
    "no stage": (
        {"passes": [Pass("a", "loops", unchanged)]},
        "plugin.stage",
        "is for the stage 'loops'.*Stages are ",
    ),
    "no point": (
        {"passes": [Pass("a", "loop", unchanged, at="at noon")]},
        "plugin.extension_point",
        "runs at 'at noon'.*Extension points are 'before vectorize_loops'",
    ),
    "a point of another stage": (
        {"passes": [Pass("a", "flat", unchanged, at=POINT)]},
        "plugin.extension_point",
        "is for the flat stage, but modules are of the loop stage",
    ),
    "a primitive of another plugin": (
        {"primitives": [primitive("other.fuse")]},
        "plugin.primitive",
        "not a primitive of its own",
    ),
    "a function without a name": ({"primitives": [unchanged]}, "plugin.primitive", "of its own"),
    "a primitive twice": (
        {"primitives": [primitive("acme.fuse"), primitive("acme.fuse")]},
        "plugin.primitive",
        "registers two primitives 'acme.fuse'",
    ),
}


@pytest.mark.parametrize(("hooks", "code", "text"), WRONG.values(), ids=WRONG)
def test_what_is_not_valid_is_refused_with_the_name_of_the_plugin(hooks, code, text):
    with pytest.raises(PluginError, match=f"(?s){text}") as caught:
        extension(**hooks)
    assert caught.value.code == code
    assert "'acme'" in str(caught.value)


def rules(*results):
    """An extension with a rule for each of the results."""
    return extension(
        schedules=[lambda module, machine, stats, result=result: result for result in results]
    )


def test_the_first_rule_that_applies_decides():
    assert rules(None, SPLIT, Schedule()).schedule(MODULE, Machine(), None) == SPLIT
    assert rules(None, None).schedule(MODULE, Machine(), None) is None


@pytest.mark.parametrize("result", [3, "split", ScheduleSpace(())])
def test_a_rule_that_returns_no_schedule_is_blamed(result):
    with pytest.raises(PluginError, match=r"'acme' cannot choose a schedule: .*a rule returned"):
        rules(result).schedule(MODULE, Machine(), None)


def test_a_pass_is_applied_and_its_result_checked():
    seen = []
    result = extension().apply_pass(Pass("a", "flat", unchanged), MODULE, check=seen.append)
    assert result == MODULE
    assert seen == [MODULE]


def fails(module):
    raise ValueError("out of ideas")


def lowered(module):
    return Module("loop", module.functions, module.entry)


BROKEN = {
    "it raises": (fails, "out of ideas"),
    "its result has no stage": (lambda module: None, "it returned None"),
    "its result has another stage": (
        lowered,
        "it returned a module of the loop stage; expected .* flat",
    ),
}


@pytest.mark.parametrize(("run", "text"), BROKEN.values(), ids=BROKEN)
def test_a_broken_pass_is_named_with_its_plugin(run, text):
    with pytest.raises(PluginError, match=f"'acme' cannot run its pass 'a': .*{text}"):
        extension().apply_pass(Pass("a", "flat", run), MODULE)
