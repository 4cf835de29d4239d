"""The registry: installed backends, broken plugins, and the checks of what a backend returns."""

import sys

import pytest

from gossamer_backend import Backend, Registry
from gossamer_ir.errors import ArgumentError, PluginError
from gossamer_ir.interchange.records import Target
from gossamer_ir.nodes import Function, Module, Param
from gossamer_machine import Machine

REASONS = {
    "old-api": r"written for version 1 of the plugin API; expected 2. Install a release",
    "list-of-capabilities": "must declare its capabilities as a frozenset",
    "incomplete": "lacks targets, probe, machine, compile, load",
    "other-name": "must register one backend of its own name; it registers 'another'",
    "no-hook": "registers no backend",
    "misspelled-hook": "unknown hook 'gossamer_backend'",
    "other-primitive": "<built-in function len>, which is not a primitive of its own",
    "same-primitive": "registers two primitives 'same-primitive.f'",
    "raising-hook": "RuntimeError: out of order",
    "raising": "OSError: libmissing.so: cannot open shared object file",
    "exiting": "SystemExit: no license",
    "not-there": "ModuleNotFoundError: No module named 'gossamer_no_such_module'",
    "clash": "Several distributions install the backend 'clash': another-clash, broken-ones",
}


def test_names_are_known_without_importing_anything(broken_plugins):
    assert {"tiny-interpreter", *REASONS} <= set(broken_plugins.names())
    assert not {"gossamer_tiny", "gossamer_broken", "gossamer_raising"} & set(sys.modules)


def test_only_the_chosen_plugin_is_imported(broken_plugins):
    backend = broken_plugins.backend("tiny-interpreter")
    assert backend.name == "tiny-interpreter"
    assert isinstance(backend, Backend)
    assert "gossamer_tiny" in sys.modules
    assert not {"gossamer_broken", "gossamer_raising", "gossamer_exiting"} & set(sys.modules)


@pytest.mark.parametrize(("name", "reason"), REASONS.items())
def test_a_broken_plugin_is_named_with_what_is_wrong(broken_plugins, name, reason):
    with pytest.raises(PluginError) as caught:
        broken_plugins.backend(name)
    assert name in str(caught.value)
    assert reason in str(caught.value)


def test_list_reports_every_backend_usable_or_why_not(broken_plugins):
    infos = {info.name: info for info in broken_plugins.backend_infos()}
    tiny = infos["tiny-interpreter"]
    assert (tiny.usable, tiny.version, tiny.targets) == (True, "0.1", ("tiny-interpreter",))
    assert tiny.distribution == "gossamer-tiny"
    for name, reason in REASONS.items():
        assert not infos[name].usable
        assert reason in infos[name].reason
    assert infos["unusable"].reason == "there is no such machine"
    assert "ZeroDivisionError: no such device" in infos["raising-probe"].reason


def test_an_unknown_backend_is_refused_with_those_installed(install):
    install("gossamer-tiny", [("tiny-interpreter", "gossamer_tiny")])
    with pytest.raises(ArgumentError, match=r"no backend 'cuda'.*tiny-interpreter") as caught:
        Registry().backend("cuda")
    assert caught.value.code == "backend.unknown"
    with pytest.raises(ArgumentError, match="No backend is installed"):
        Registry(group="no.such.group").backend("cuda")


def test_a_plugin_registers_more_than_its_backend(install):
    install("gossamer-tiny", [("tiny-interpreter", "gossamer_tiny")])
    registry = Registry()
    plugin = registry.plugin("tiny-interpreter")
    assert plugin is registry.plugin("tiny-interpreter")
    assert [item.name for item in plugin.intrinsics] == ["nothing"]
    assert [item.name for item in plugin.backend_extension.passes] == ["unchanged"]
    assert [rules.__name__ for rules in plugin.backend_extension.schedules] == ["no_schedule"]
    assert [*registry.working_extensions("tiny-interpreter")] == [plugin.backend_extension]


def needing_float16():
    return Module("flat", (Function("f", (Param("a", "float16"),), ()),), "f")


def test_what_was_not_declared_is_refused(tiny):
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
