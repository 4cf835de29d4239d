"""Checks of what a backend is given, and of what it returns."""

import pytest

from gossamer_ir.errors import ArgumentError, PluginError
from gossamer_ir.interchange.records import Target
from gossamer_ir.nodes import Function, Module, Param
from gossamer_machine import Machine


def needing_float16():
    return Module("flat", (Function("f", (Param("a", "float16"),), ()),), "f")


def test_undeclared_capabilities_are_refused(tiny):
    with pytest.raises(PluginError, match=r"'tiny-interpreter' did not declare .*dtype\.float16"):
        tiny.compile(needing_float16(), Target("tiny-interpreter"))


def test_only_flat_modules_and_own_targets_are_compiled(tiny):
    flat = Module("flat", (Function("f", (), ()),), "f")
    with pytest.raises(ArgumentError) as caught:
        tiny.compile(Module("loop", (), "f"), Target("tiny-interpreter"))
    assert caught.value.code == "backend.stage"
    for ask in (lambda target: tiny.compile(flat, target), tiny.probe):
        with pytest.raises(ArgumentError) as caught:
            ask(Target("generic-cpu"))
        assert caught.value.code == "backend.target"


def test_a_backend_may_show_its_code(broken_plugins):
    flat = Module("flat", (Function("f", (), ()),), "f")
    tiny = broken_plugins.backend("tiny-interpreter")
    assert '"stage":"flat"' in tiny.texts(flat, Target("tiny-interpreter"))["wire"]
    assert broken_plugins.backend("unusable").texts(flat, Target("unusable")) == {}
    with pytest.raises(PluginError, match="did not declare"):
        tiny.texts(needing_float16(), Target("tiny-interpreter"))


def test_a_backend_that_compiles_to_nonsense_is_blamed(broken_plugins):
    flat = Module("flat", (Function("f", (), ()),), "f")
    with pytest.raises(PluginError, match="'unusable' compiled a module to something"):
        broken_plugins.backend("unusable").compile(flat, Target("unusable"))


def test_a_backend_that_loads_no_kernel_is_blamed(tiny, monkeypatch):
    flat = Module("flat", (Function("f", (), ()),), "f")
    artifact = tiny.compile(flat, Target("tiny-interpreter"))
    monkeypatch.setattr(tiny.wrapped, "load", lambda artifact: "an address")
    with pytest.raises(PluginError, match="the type 'str', which is not a kernel") as caught:
        tiny.load(artifact)
    assert caught.value.code == "plugin.kernel"


@pytest.mark.parametrize(
    ("machine", "reason"),
    [
        ("a large one", "by 'a large one'; expected a gossamer_machine.Machine"),
        (Machine(is_scalable=True), "without the capability vectors.scalable"),
    ],
)
def test_a_backend_that_describes_no_machine_is_blamed(tiny, monkeypatch, machine, reason):
    monkeypatch.setattr(tiny.wrapped, "machine", lambda target: machine)
    with pytest.raises(PluginError, match=reason):
        tiny.machine(Target("tiny-interpreter"))


def test_an_artifact_of_another_backend_is_not_loaded(tiny, make_kernel):
    from gossamer_ir.interchange.records import Signature

    artifact = make_kernel(Signature("f", (), (), ()), lambda _: 0).artifact
    with pytest.raises(PluginError, match=r"cannot load an artifact of 'toy' 1\.0"):
        tiny.load(artifact)
