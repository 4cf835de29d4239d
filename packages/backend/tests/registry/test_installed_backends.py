"""The registry: installed backends and broken plugins."""

import sys

import pytest

from gossamer_backend import Backend, Registry
from gossamer_ir.errors import ArgumentError, PluginError

REASONS = {
    "old-api": r"written for version 1 of the plugin API; expected 2. Install a release",
    "new-api": r"version 3 of the plugin API; expected 2. Install a newer release of gossamer",
    "fractional-api": r"written for version 2.0 of the plugin API; expected 2. Install a release",
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
    assert (tiny.is_usable, tiny.version, tiny.targets) == (True, "0.1", ("tiny-interpreter",))
    assert tiny.distribution == "gossamer-tiny"
    for name, reason in REASONS.items():
        assert not infos[name].is_usable
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
